import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"

const style = readFileSync(join(import.meta.dirname, "../../src/console/page/style/Base.css"), "utf8")

type Palette = ReadonlyMap<string, string>

const paletteOf = (rules: string): Palette =>
  new Map(
    Array.from(rules.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g), ([, name = "", color = ""]) => [name, color])
  )

const [, lightRules = "", darkRules = ""] = style.split(/:root \{/)
const light = paletteOf(lightRules.split("}")[0] ?? "")
const dark = paletteOf(darkRules.split("}")[0] ?? "")

/** Source: WCAG 2.2, relative luminance. */
const luminance = (color: string): number => {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = parseInt(color.slice(at, at + 2), 16) / 255
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const contrast = (palette: Palette, one: string, other: string): number => {
  const [a, b] = [one, other].map((name) => {
    const color = palette.get(name)
    assert.isDefined(color, `--${name}`)
    return luminance(color ?? "")
  })
  const [high = 0, low = 0] = [a ?? 0, b ?? 0].sort((x, y) => y - x)
  return (high + 0.05) / (low + 0.05)
}

describe.each([
  ["light", light],
  ["dark", dark]
])("the page's colours, %s,", (_name, palette) => {
  it("let every text be read: 4.5 to 1 (WCAG 2.2, 1.4.3)", () => {
    for (const text of ["ink", "muted", "accent", "worse", "better"]) {
      for (const ground of ["ground", "surface", "row-bar"]) {
        assert.isAtLeast(contrast(palette, text, ground), 4.5, `${text} on ${ground}`)
      }
    }
    assert.isAtLeast(contrast(palette, "accent-ink", "accent"), 4.5)
  })

  it("let lines, lights and edges of fields be seen: 3 to 1 (WCAG 2.2, 1.4.11)", () => {
    for (const mark of ["accent", "second", "line-strong", "up", "degraded", "down"]) {
      for (const ground of ["ground", "surface"]) {
        assert.isAtLeast(contrast(palette, mark, ground), 3, `${mark} on ${ground}`)
      }
    }
  })
})
