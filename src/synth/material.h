// What surfaces are made of, and the random choice of it.
#pragma once

#include <memory>

#include "data/surfaces.h"
#include "synth/dice.h"
#include "synth/options.h"
#include "synth/texture.h"

namespace nmrf::synth {

struct Material {
  Texture texture;
  float specular = 0;        // strength of highlights
  float shininess = 20;      // their sharpness
  float mirror = 0;          // share of light that is the reflection of the surroundings
  float glass = 0;           // share of light that comes from behind
  float emission = 0;        // shines by itself, times the texture's colour
  float bump = 0;            // slope of small dents
  float bump_frequency = 1;  // dents per metre
  float backlight = 0;       // share of light that falls through (leaves, lampshades)
};

// The class that describes what is hardest about it.
Surface surface_of(const Material& material);

// Draws materials. Sizes are metres and set the scale of the pattern.
class MaterialMaker {
 public:
  explicit MaterialMaker(const SynthOptions& options);

  // Anything at all, for an object of about this size.
  Material any(Dice& dice, float size) const;
  // By what it should look like.
  Material wall(Dice& dice) const;  // indoors
  Material floor(Dice& dice) const;
  Material facade(Dice& dice) const;  // outdoors, without windows
  Material road(Dice& dice) const;
  Material pavement(Dice& dice) const;
  Material soil(Dice& dice) const;  // grass, gravel, earth, fallen leaves
  Material wood(Dice& dice) const;
  Material metal(Dice& dice) const;
  Material paint(Dice& dice) const;  // plain or nearly so
  Material car_paint(Dice& dice) const;
  Material window(Dice& dice) const;  // dark, reflecting
  Material rubber(Dice& dice) const;
  Material cloth(Dice& dice, float size) const;
  Material paper(Dice& dice, float size) const;  // posters, covers, boxes with print
  Material foliage(Dice& dice) const;
  Material bark(Dice& dice) const;
  Material rock(Dice& dice) const;
  Material lamp(Dice& dice) const;
  // A photograph that covers `height` metres; anything when there are no photographs.
  Material picture(Dice& dice, float height) const;

  // A colour as found in the world, linear.
  Vec3 color(Dice& dice) const;

 private:
  // Four colours that go together.
  void palette(Dice& dice, Texture& texture) const;
  Texture pattern(Dice& dice, Pattern pattern, float cell) const;
  // Takes most of the colour out, as of things that cover large surfaces.
  void calm(Dice& dice, Texture& texture) const;
  Texture photo(Dice& dice, float height) const;
  void finish(Dice& dice, Material& material) const;  // highlights, mirrors, dents

  const SynthOptions& options_;
  std::shared_ptr<PhotoLibrary> photos_;
};

}  // namespace nmrf::synth
