import { assert, describe, it } from "@effect/vitest"
import { isMeant, NearestFlags, type PlacedFlag } from "#streams/files/sync/NearestFlag.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"

const flag = (path: string, more: Partial<PlacedFlag> = {}): PlacedFlag => ({
  type: path === "" || path.endsWith("/") ? "directory" : "file",
  id: `id of ${path}`,
  bucketId: "b",
  path,
  enabled: true,
  scope: "all",
  deviceIds: [],
  ...more
})

describe("the nearest flag", () => {
  it("of a file is its own, else that of the nearest directory above", () => {
    const flags = new NearestFlags([
      flag("", { scope: "selected", deviceIds: ["d1"] }),
      flag("a/b/", { enabled: false }),
      flag("a/b/c/"),
      flag("a/b/x.txt")
    ])
    const of = (path: string) => flags.ofFile(`id of ${path}`, "b", path)?.path
    assert.deepStrictEqual(["x", "a/x", "a/b/x", "a/b/x.txt", "a/b/c/x", "a/b/c/d/x", "a/bb/x"].map(of), [
      "",
      "",
      "a/b/",
      "a/b/x.txt",
      "a/b/c/",
      "a/b/c/",
      ""
    ])
    assert.isUndefined(flags.ofFile("other", "another bucket", "x"))
    assert.strictEqual(flags.ofDirectory("b", "a/b/")?.path, "a/b/")
  })

  it("means all devices, or those that it names; requests without a device see the former alone", () => {
    const selected = flag("a/", { scope: "selected", deviceIds: ["d1", "d2"] })
    for (const [one, device, expected] of [
      [flag("a/"), undefined, true],
      [flag("a/"), "d1", true],
      [selected, undefined, false],
      [selected, "d2", true],
      [selected, "d3", false],
      [flag("a/", { enabled: false }), "d1", false],
      [undefined, "d1", false]
    ] as const)
      assert.strictEqual(isMeant(one, device), expected)
  })

  it("decides as a walk upward does, in random trees", () => {
    const random = seededRandom(21)
    const pick = <A>(list: ReadonlyArray<A>): A => list[Math.floor(random() * list.length)] as A
    for (let round = 0; round < 200; round++) {
      const paths = [""]
      for (let count = 0; count < 20; count++) paths.push(`${pick(paths)}${pick(["a", "b", "ab"])}/`)
      const directories = [...new Set(paths)]
      const flagged = directories
        .filter(() => random() < 0.3)
        .map((path) => flag(path, { enabled: random() < 0.6 }))
      const flags = new NearestFlags(flagged)
      const naive = (path: string): PlacedFlag | undefined =>
        flagged
          .filter((one) => path.startsWith(one.path))
          .toSorted((one, other) => other.path.length - one.path.length)[0]
      for (const path of directories) {
        assert.strictEqual(flags.ofDirectory("b", path), naive(path), `${round} ${path}`)
        assert.strictEqual(flags.ofFile("f", "b", `${path}f`), naive(path), `${round} ${path}f`)
      }
      const enabled = flagged.filter((one) => one.enabled)
      assert.deepStrictEqual(
        flags
          .outermost()
          .map(({ path }) => path)
          .sort(),
        enabled
          .filter((one) => !enabled.some(({ path }) => path !== one.path && one.path.startsWith(path)))
          .map(({ path }) => path)
          .sort()
      )
    }
  })
})
