// Cars, vans, bicycles.
#include "synth/builder.h"

namespace nmrf::synth {
namespace {

// The side view is drawn in the x-y plane and extruded along z; here x is the length of the car.
// The roof is narrower than the belt line, so vertices above it lean inwards.
void lean_in(Mesh& mesh, float belt, float roof, float amount) {
  for (auto& p : mesh.positions)
    if (p.y > belt) p.z *= 1 - amount * (p.y - belt) / (roof - belt);
}

// Drawn only where the setting asks for it, so that other vehicles stay as they were.
bool glossy(const SynthOptions& options, Dice& dice) {
  return options.gloss > 0 && dice.chance(options.gloss);
}

// Dark panes show more of the street than of the seats behind them.
Material dark_pane(Dice& dice, Material m) {
  Vec3 tint = Vec3{1, 1.05f, 1.1f} * dice.log_real(0.004, 0.03);
  for (auto& c : m.texture.colors) c = tint;
  m.mirror = dice.real(0.4, 0.95);
  m.specular = dice.real(0.5, 1.5), m.shininess = dice.log_real(80, 400);
  return m;
}

// Fresh lacquer, polished rims.
Material polished(Dice& dice, Material m, double least, double most) {
  m.mirror = dice.real(least, most);
  m.specular = dice.real(0.6, 1.8), m.shininess = dice.log_real(60, 400);
  return m;
}

}  // namespace

void Builder::car(Dice& dice, const Transform& place) {
  // Its length runs along x in the drawings; turned so that the front looks towards -z.
  Transform at = place * Transform::turn_y(-0.5f * kPi);
  float length = dice.real(3.6, 4.8), width = dice.real(1.65, 1.85), roof = dice.real(1.38, 1.62);
  float belt = roof * dice.real(0.58, 0.64), low = 0.2f, l = length / 2;
  float hood = dice.real(0.16, 0.28) * length, rear = dice.pick({0.03f, 0.05f, 0.16f}) * length;
  float nose = belt * dice.real(0.72, 0.85);
  bool gloss = glossy(options, dice);
  auto panels = [&](Material m) { return gloss ? polished(dice, std::move(m), 0.15, 0.5) : m; };
  int paint = scene.add_material(panels(make.car_paint(dice)));
  Material pane = make.window(dice);
  int glass = scene.add_material(gloss ? dark_pane(dice, std::move(pane)) : std::move(pane));
  int black = scene.add_material(make.rubber(dice));
  int chrome = scene.add_material(panels(make.metal(dice)));
  float wheel = dice.real(0.28, 0.34), axle = 0.31f * length;

  int rim = gloss ? dice.count(4, 9) : 0;  // dark gaps of its rims

  // Body with wheel arches cut into its lower edge.
  std::vector<Vec2> body = {{-l, low + 0.05f}};
  for (float center : {-axle, axle})
    for (int i = 0; i <= 6; ++i) {
      float a = kPi * (1 - static_cast<float>(i) / 6);
      body.push_back({center + 1.15f * wheel * std::cos(a), low + 1.1f * wheel * std::sin(a)});
    }
  body.insert(body.end(), {{l, low + 0.05f},
                           {l + 0.04f, belt * 0.55f},
                           {l - 0.02f, belt * 0.93f},
                           {l - rear, belt},
                           {-l + hood, belt},
                           {-l + 0.12f, nose},
                           {-l, nose * 0.8f},
                           {-l - 0.04f, belt * 0.5f}});
  scene.add(extrusion(body, width), at, paint);
  // Cabin: glass all around, a painted roof and pillars.
  float front = -l + hood, back = l - rear, slope = dice.real(0.4, 0.75),
        tail = rear > 0.3f ? dice.real(0.35, 0.6) : dice.real(0.1, 0.3);
  std::vector<Vec2> cabin = {{front, belt},
                             {back, belt},
                             {back - tail, roof - 0.04f},
                             {back - tail - 0.15f, roof},
                             {front + slope + 0.15f, roof},
                             {front + slope, roof - 0.04f}};
  Mesh house = extrusion(cabin, width * 0.97f);
  lean_in(house, belt, roof, 0.2f);
  scene.add(house, at, glass);
  Mesh top = extrusion({{front + slope - 0.03f, roof - 0.05f},
                        {back - tail + 0.05f, roof - 0.05f},
                        {back - tail - 0.12f, roof + 0.015f},
                        {front + slope + 0.12f, roof + 0.015f}},
                       width * 0.97f * 0.83f);
  scene.add(top, at, paint);
  for (float side : {-1.f, 1.f}) {
    float z0 = side * width * 0.487f, z1 = side * width * 0.487f * 0.81f;
    auto pillar = [&](float x0, float x1, float r) {
      bar(at, {x0, belt, z0}, {x1, roof - 0.03f, z1}, r, paint, 5);
    };
    pillar(front, front + slope, 0.035f);
    pillar(back, back - tail, 0.045f);
    float mid = mix(front + slope, back - tail, 0.45f);
    pillar(mid, mid, 0.03f);
    // Doors and a moulding: thin lines on a large plain surface.
    part(box({0.01f, belt * 0.6f, 0.01f}), at, {mid, belt * 0.62f, side * width / 2}, black);
    part(box({length * 0.7f, 0.04f, 0.02f}), at, {0, belt * 0.55f, side * width / 2},
         dice.chance(0.5) ? black : paint);
    part(box({0.12f, 0.03f, 0.03f}), at, {mid + 0.2f, belt * 0.88f, side * (width / 2 + 0.01f)},
         chrome);
    part(superquadric({0.09f, 0.07f, 0.1f}, 0.5f, 0.5f, 14), at,
         {front + 0.25f, belt + 0.06f, side * (width / 2 + 0.08f)}, paint);
    for (float center : {-axle, axle}) {
      Transform hub = at * Transform::move({center, wheel, side * (width / 2 - 0.1f)}) *
                      Transform::turn_x(side * 0.5f * kPi);
      scene.add(
          lathe({{wheel * 0.6f, 0.1f}, {wheel * 0.92f, 0.11f}, {wheel, 0.06f}, {wheel, -0.1f}}, 22),
          hub, black);
      scene.add(lathe({{0, 0.085f}, {wheel * 0.2f, 0.09f}, {wheel * 0.62f, 0.075f}}, 18), hub,
                chrome);
      int spokes = dice.count(0, 1) * 5;
      if (gloss) spokes = rim;
      for (int k = 0; k < spokes; ++k)
        scene.add(
            box({wheel * 0.55f, 0.01f, 0.05f}),
            hub * Transform::turn_y(static_cast<float>(k) * 2 * kPi / static_cast<float>(spokes)) *
                Transform::move({wheel * 0.33f, 0.1f, 0}),
            black);
    }
    // Lights at both ends.
    Material red = make.paint(dice);
    red.texture.colors[0] = {0.5f, 0.02f, 0.02f};
    part(box({0.06f, 0.14f, 0.3f}), at, {l, belt * 0.82f, side * width * 0.38f}, std::move(red));
    part(box({0.06f, 0.13f, 0.32f}), at, {-l - 0.005f, nose * 0.83f, side * width * 0.36f}, chrome);
  }
  Material plate = make.paper(dice, 0.3f);
  int plate_id = scene.add_material(std::move(plate));
  part(box({0.02f, 0.11f, 0.5f}), at, {l + 0.05f, belt * 0.6f, 0}, plate_id);
  part(box({0.02f, 0.11f, 0.5f}), at, {-l - 0.05f, belt * 0.42f, 0}, plate_id);
  part(box({0.03f, 0.14f, width * 0.6f}), at, {-l - 0.02f, nose * 0.62f, 0}, black);
}

void Builder::van(Dice& dice, const Transform& place) {
  Transform at = place * Transform::turn_y(-0.5f * kPi);
  bool bus = dice.chance(0.25);
  float length = bus ? dice.real(8, 12) : dice.real(4.6, 7),
        width = bus ? 2.5f : dice.real(1.9, 2.4);
  float height = bus ? 3 : dice.real(2, 3.2), low = 0.35f, l = length / 2;
  bool gloss = glossy(options, dice);
  Material body = dice.chance(0.6) ? make.car_paint(dice) : make.any(dice, 2);
  if (gloss) body = polished(dice, std::move(body), 0.1, 0.35);
  int paint = scene.add_material(std::move(body));
  Material pane = make.window(dice);
  int glass = scene.add_material(gloss ? dark_pane(dice, std::move(pane)) : std::move(pane));
  int black = scene.add_material(make.rubber(dice));
  float nose = bus ? 0.1f : dice.real(0.3, 1.2);
  scene.add(extrusion({{-l, low},
                       {l, low},
                       {l, height},
                       {-l + nose, height},
                       {-l + 0.2f * nose, height * 0.5f},
                       {-l, height * 0.45f}},
                      width),
            at, paint);
  for (float side : {-1.f, 1.f}) {
    float z = side * (width / 2 + 0.005f);
    int panes = bus ? dice.count(5, 8) : dice.count(1, 3);
    float from = -l + nose, span = bus ? length - nose - 0.4f : dice.real(1, length - nose - 0.3f);
    for (int i = 0; i < panes; ++i) {
      float w = span / static_cast<float>(panes);
      part(box({w * 0.9f, height * 0.3f, 0.02f}), at,
           {from + w * (static_cast<float>(i) + 0.5f), height * 0.68f, z}, glass);
    }
    if (dice.chance(0.5))
      part(box({length * 0.4f, height * 0.2f, 0.015f}), at, {l * 0.3f, height * 0.4f, z},
           make.paper(dice, 0.6f));
    for (float x : {-0.33f, 0.33f}) {
      float r = bus ? 0.48f : 0.36f;
      Transform hub = at * Transform::move({x * length, r, side * (width / 2 - 0.1f)}) *
                      Transform::turn_x(side * 0.5f * kPi);
      scene.add(lathe({{0, 0.09f}, {r * 0.55f, 0.1f}, {r * 0.6f, 0.12f}, {r, 0.11f}, {r, -0.12f}},
                      22, false),
                hub, black);
    }
  }
  // Windscreen and rear windows.
  scene.add(rectangle(width * 0.88f, height * 0.42f),
            at * Transform::move({-l + 0.58f * nose - 0.02f, height * 0.74f, 0}) *
                Transform::turn_y(0.5f * kPi) *
                Transform::turn_x(std::atan2(0.8f * nose, height * 0.5f)),
            glass);
  part(box({0.02f, height * 0.3f, width * 0.7f}), at, {l + 0.01f, height * 0.7f, 0}, glass);
  part(box({0.02f, 0.11f, 0.5f}), at, {l + 0.02f, 0.6f, 0}, make.paper(dice, 0.3f));
}

void Builder::bicycle(Dice& dice, const Transform& place) {
  Transform at = place * Transform::turn_y(0.5f * kPi);
  int frame = scene.add_material(make.car_paint(dice));
  int black = scene.add_material(make.rubber(dice));
  int steel = scene.add_material(make.metal(dice));
  float r = dice.real(0.3, 0.36), t = 0.016f;
  Vec3 rear{-0.52f, r, 0}, front{0.52f, r, 0}, crank{-0.08f, r * 0.85f, 0}, seat{-0.22f, 0.82f, 0},
      head{0.36f, 0.8f, 0};
  for (Vec3 hub : {rear, front}) {
    scene.add(torus(r, 0.018f, 36), at * Transform::move(hub) * Transform::turn_x(0.5f * kPi),
              black);
    int spokes = dice.count(8, 14);
    for (int i = 0; i < spokes; ++i) {
      float a = 2 * kPi * static_cast<float>(i) / static_cast<float>(spokes);
      bar(at, hub, hub + Vec3{std::cos(a), std::sin(a), 0} * r, 0.0025f, steel, 3);
    }
  }
  for (auto [a, b] : {std::pair{rear, crank},
                      {crank, seat},
                      {seat, head},
                      {crank, head},
                      {rear, seat},
                      {head, front}})
    bar(at, a, b, t, frame, 6);
  bar(at, head, head + Vec3{0.02f, 0.2f, 0}, t, steel, 6);
  bar(at, head + Vec3{0.02f, 0.2f, -0.27f}, head + Vec3{0.02f, 0.2f, 0.27f}, t, steel, 6);
  bar(at, seat, seat + Vec3{-0.03f, 0.13f, 0}, t, steel, 6);
  part(superquadric({0.13f, 0.035f, 0.07f}, 0.8f, 0.8f, 14), at, seat + Vec3{-0.03f, 0.15f, 0},
       black);
  part(torus(0.09f, 0.012f, 18), at * Transform::move(crank) * Transform::turn_x(0.5f * kPi), {},
       steel);
}

}  // namespace nmrf::synth
