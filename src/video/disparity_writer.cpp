// Lossless 16-bit video: FFV1 in Matroska, through FFmpeg. OpenCV writes 8 bits only.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "io/video.h"
#include "nmrf/error.h"
#include "nmrf/version.h"

namespace nmrf {
namespace {

[[noreturn]] void refuse(const std::string& what, int code) {
  char reason[128] = "";
  av_strerror(code, reason, sizeof reason);
  throw Error(ErrorKind::kFailure, what + ": " + reason);
}

struct FreeFormat {
  void operator()(AVFormatContext* context) const {
    if (context->pb) avio_closep(&context->pb);
    avformat_free_context(context);
  }
};
struct FreeCodec {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
};
struct FreeFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct FreePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};

class Ffv1Writer : public VideoWriter {
 public:
  Ffv1Writer(const std::string& path, int width, int height, double rate)
      : path_(path), frame_(av_frame_alloc()), packet_(av_packet_alloc()) {
    av_log_set_level(AV_LOG_QUIET);
    AVFormatContext* format = nullptr;
    check(avformat_alloc_output_context2(&format, nullptr, "matroska", path.c_str()),
          "no Matroska writer");
    format_.reset(format);
    const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_FFV1);
    if (!codec) throw Error(ErrorKind::kUsage, "FFmpeg was built without the FFV1 encoder");
    codec_.reset(avcodec_alloc_context3(codec));
    codec_->width = width;
    codec_->height = height;
    codec_->pix_fmt = AV_PIX_FMT_GRAY16LE;
    codec_->time_base = av_d2q(1 / rate, 1 << 20);
    codec_->framerate = av_inv_q(codec_->time_base);
    codec_->gop_size = 1;  // each frame stands alone
    codec_->level = 3;     // with checksums
    if (format_->oformat->flags & AVFMT_GLOBALHEADER) codec_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    check(avcodec_open2(codec_.get(), codec, nullptr), "FFV1 cannot be started");
    stream_ = avformat_new_stream(format_.get(), nullptr);
    if (!stream_) throw std::bad_alloc();
    stream_->time_base = codec_->time_base;
    stream_->avg_frame_rate = codec_->framerate;
    check(avcodec_parameters_from_context(stream_->codecpar, codec_.get()), "no parameters");
    check(avio_open(&format_->pb, path.c_str(), AVIO_FLAG_WRITE), "cannot be opened");
    check(avformat_write_header(format_.get(), nullptr), "the header cannot be written");
    frame_->format = codec_->pix_fmt;
    frame_->width = width;
    frame_->height = height;
    check(av_frame_get_buffer(frame_.get(), 0), "no memory for a frame");
  }

  void write(const std::uint16_t* values) override {
    check(av_frame_make_writable(frame_.get()), "no memory for a frame");
    const auto row = static_cast<std::size_t>(codec_->width);
    for (int y = 0; y < codec_->height; ++y)
      std::memcpy(frame_->data[0] + static_cast<std::ptrdiff_t>(y) * frame_->linesize[0],
                  values + static_cast<std::size_t>(y) * row, row * sizeof(std::uint16_t));
    frame_->pts = next_++;
    check(avcodec_send_frame(codec_.get(), frame_.get()), "a frame cannot be encoded");
    drain();
  }

  void finish() override {
    check(avcodec_send_frame(codec_.get(), nullptr), "the video cannot be ended");
    drain();
    check(av_write_trailer(format_.get()), "the video cannot be ended");
    check(avio_closep(&format_->pb), "the video cannot be written");
  }

 private:
  void check(int code, const char* what) const {
    if (code < 0) refuse(path_ + ": " + what, code);
  }
  void drain() {
    for (;;) {
      const int code = avcodec_receive_packet(codec_.get(), packet_.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      check(code, "a frame cannot be encoded");
      av_packet_rescale_ts(packet_.get(), codec_->time_base, stream_->time_base);
      packet_->duration = av_rescale_q(1, codec_->time_base, stream_->time_base);
      packet_->stream_index = stream_->index;
      check(av_interleaved_write_frame(format_.get(), packet_.get()), "a frame cannot be written");
    }
  }

  std::string path_;
  std::unique_ptr<AVFormatContext, FreeFormat> format_;
  std::unique_ptr<AVCodecContext, FreeCodec> codec_;
  std::unique_ptr<AVFrame, FreeFrame> frame_;
  std::unique_ptr<AVPacket, FreePacket> packet_;
  AVStream* stream_ = nullptr;
  std::int64_t next_ = 0;
};

}  // namespace
}  // namespace nmrf

extern "C" NMRF_API nmrf::VideoWriter* nmrf_create_video(const char* path, int width, int height,
                                                         double rate, const char* version,
                                                         char* message, std::size_t message_bytes) {
  if (std::strcmp(version, NMRF_VERSION) != 0) {
    std::snprintf(message, message_bytes,
                  "the module for videos is of version %s, nmrf of version %s. Install both from "
                  "one build.",
                  NMRF_VERSION, version);
    return nullptr;
  }
  try {
    return new nmrf::Ffv1Writer(path, width, height, rate);
  } catch (const std::exception& error) {
    std::snprintf(message, message_bytes, "%s", error.what());
    return nullptr;
  }
}
