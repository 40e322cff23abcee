import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { slugOf as slugWithin } from "#schemas/core/Slug.ts"

const slugOf = (name: string) => slugWithin(name, 64)

describe("a slug from a name", () => {
  it("has small letters, digits and single inner hyphens", () => {
    for (const [name, slug] of [
      ["Coding", "coding"],
      ["  My Coding Set!  ", "my-coding-set"],
      ["GPT-5 / Claude 4.5", "gpt-5-claude-4-5"],
      ["Crème Brûlée", "creme-brulee"],
      ["--a--", "a"],
      ["ﬁne ① Ｗｉｄｅ", "fine-1-wide"],
      ["x".repeat(100), "x".repeat(64)],
      [`${"x".repeat(63)} y`, "x".repeat(63)]
    ] as const) {
      assert.strictEqual(slugOf(name), slug, name)
    }
  })

  it("is none where the name has nothing for it", () => {
    for (const name of ["日本語", "!!!", " ", "🦀"]) assert.isUndefined(slugOf(name), name)
  })

  it("always has the form that slugs have, and is its own slug", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 100 }), (name) => {
        const slug = slugOf(name)
        if (slug === undefined) return
        assert.match(slug, /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/)
        assert.notInclude(slug, "--")
        assert.isAtMost(slug.length, 64)
        assert.strictEqual(slugOf(slug), slug)
      })
    )
  })
})
