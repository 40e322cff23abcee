import { assert, describe, it } from "@effect/vitest"
import { load } from "#src/front/uws/Addon.ts"

const options = { maxHeaderBytes: 16_384 }

describe("the addon", () => {
  it("loads nothing whose hash is not the pinned one, and says which file it is", () => {
    const wrong = Object.fromEntries(
      ["20.51.4", "20.69.0"].map((version) => [
        `${process.platform}-${process.arch}-${process.versions.node.split(".")[0]}@${version}`,
        "0".repeat(64)
      ])
    )
    const loaded = load(options, wrong)
    assert.strictEqual(loaded._tag, "NotLoaded")
    if (loaded._tag === "NotLoaded") {
      assert.strictEqual(loaded.reasons.length, 2)
      for (const reason of loaded.reasons)
        assert.match(reason, /SHA-256 [0-9a-f]{64}, not the pinned 0000|Cannot find/)
    }
  })

  it("loads nothing that has no pinned hash", () => {
    const loaded = load(options, {})
    assert.strictEqual(loaded._tag, "NotLoaded")
    if (loaded._tag === "NotLoaded") {
      for (const reason of loaded.reasons) assert.match(reason, /no hash is pinned|Cannot find/)
    }
  })

  it("loads the newest pinned addon that this machine can load", () => {
    const loaded = load(options)
    // Only the platforms whose hash could be computed are pinned; the others are served by Node's server.
    if (process.platform === "linux" && process.arch === "x64") assert.strictEqual(loaded._tag, "Loaded")
    else assert.strictEqual(loaded._tag, "NotLoaded")
  })
})
