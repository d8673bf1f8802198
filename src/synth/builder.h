// Things to put into scenes. Unless said otherwise a thing stands on the origin of its transform, y
// up, its front towards -z, in metres; the transform may scale it.
#pragma once

#include "synth/scene.h"

namespace nmrf::synth {

class Builder {
 public:
  // `pixel`: angle of a pixel, radians.
  Builder(const SynthOptions& options, const MaterialMaker& make, Scene& scene, float pixel)
      : options(options), make(make), scene(scene), pixel(pixel) {}

  const SynthOptions& options;
  const MaterialMaker& make;
  Scene& scene;
  const float pixel;

  // The size of a pixel at a point, metres; scenes are built around a camera near the origin. Used
  // to make leaves as fine as can be seen, and wires no finer.
  float pixel_at(Vec3 point) const { return pixel * std::max(length(point), 1.f); }
  // `count` times the setting `clutter` (or `thin`), at random rounded up or down.
  int amount(Dice& dice, double count) const;
  int thin_amount(Dice& dice, double count) const;

  // Adds a mesh moved by `offset` in the frame of `at`.
  void part(const Mesh& mesh, const Transform& at, Vec3 offset, int material);
  void part(const Mesh& mesh, const Transform& at, Vec3 offset, Material material) {
    part(mesh, at, offset, scene.add_material(std::move(material)));
  }
  // A straight round bar.
  void bar(const Transform& at, Vec3 from, Vec3 to, float radius, int material, int segments = 7);

  // shapes.cpp: one random shape about `size` across, centred.
  void solid(Dice& dice, const Transform& at, float size);
  // Anything: a shape or one of the things below, centred, scaled to about `size`.
  void thing(Dice& dice, const Transform& at, float size);
  // A piece of wire mesh, lattice or bars, centred, in the x-y plane.
  void lattice(Dice& dice, const Transform& at, float width, float height);

  // furniture.cpp
  void chair(Dice& dice, const Transform& at);
  float table(Dice& dice, const Transform& at, float width, float depth, float height);
  void shelf(Dice& dice, const Transform& at, float width, float height);
  void book_row(Dice& dice, const Transform& at, float length, float height);
  void book_pile(Dice& dice, const Transform& at);
  void sofa(Dice& dice, const Transform& at);
  void floor_lamp(Dice& dice, const Transform& at);
  void vessel(Dice& dice, const Transform& at, float height);  // vase, bottle, bowl, pot
  void plant(Dice& dice, const Transform& at, float height);
  void picture(Dice& dice, const Transform& at, float width, float height);  // centred, on a wall
  void carton(Dice& dice, const Transform& at, float size);
  void figure(Dice& dice, const Transform& at, float height);  // doll, animal
  void crate(Dice& dice, const Transform& at, float size);
  void screen(Dice& dice, const Transform& at);
  void ladder(Dice& dice, const Transform& at, float height);
  void small_thing(Dice& dice, const Transform& at, float size);  // stands on a table

  // outdoor.cpp
  void tree(Dice& dice, const Transform& at, float height);
  void bush(Dice& dice, const Transform& at, float size);
  void hedge(Dice& dice, const Transform& at, float length, float height);
  void fence(Dice& dice, const Transform& at, float length, float height);
  void lamp_post(Dice& dice, const Transform& at);
  void sign(Dice& dice, const Transform& at);
  void traffic_light(Dice& dice, const Transform& at);
  void bollard(Dice& dice, const Transform& at);
  void bench(Dice& dice, const Transform& at);
  void bin(Dice& dice, const Transform& at);
  void person(Dice& dice, const Transform& at, float height);
  void rock(Dice& dice, const Transform& at, float size);
  void tuft(Dice& dice, const Transform& at, float size);
  void wires(Dice& dice, Vec3 from, Vec3 to, int count);
  // A front of width x height metres with windows and doors; x runs along it.
  void building(Dice& dice, const Transform& at, float width, float height, float depth);
  void frame_work(Dice& dice, const Transform& at, float size);  // climbing frame, scaffold

  // vehicles.cpp
  void car(Dice& dice, const Transform& at);
  void van(Dice& dice, const Transform& at);
  void bicycle(Dice& dice, const Transform& at);

 private:
  // Leaves for a crown of puffs of radius `puff` around `centers`, as fine as the distance asks
  // for.
  void leaves(Dice& dice, const Transform& at, const std::vector<Vec3>& centers, Vec3 puff,
              int material);
  void leg_frame(const Transform& at, Vec3 size, float thickness, bool round, int material);
};

}  // namespace nmrf::synth
