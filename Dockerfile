# The command nmrf in a small image: no compiler, no libtorch, no OpenCV.
#
#   docker build -t nmrf .
#   docker run --rm -v "$PWD:/work" nmrf match left.png right.png -o out/

FROM debian:bookworm-slim AS build
WORKDIR /src
COPY . .
RUN scripts/setup runtime \
 && cmake --preset runtime -DCMAKE_INSTALL_PREFIX=/usr/local \
 && cmake --build --preset runtime --target nmrf_command \
 && install -D -s build/runtime/nmrf /image/bin/nmrf \
 && install -D -m 644 -t /image/share/nmrf/models models/nmrf-fast.safetensors

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      libhwy1 libjpeg62-turbo libpng16-16 libtiff6 libwebp7 zlib1g \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /image /usr/local
WORKDIR /work
ENTRYPOINT ["nmrf"]
CMD ["--help"]
