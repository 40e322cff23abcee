import { assert, describe, it } from "@effect/vitest"
import { previewKindOf } from "#src/console/page/files/file/PreviewKind.ts"
import { directoryView, parentOf } from "#src/console/page/files/Places.ts"
import { placeOf } from "#src/console/page/files/uploads/PlaceOf.ts"
import { isAgain } from "#src/console/page/files/uploads/Upload.ts"
import { formatBytes } from "#src/console/page/files/Words.ts"

describe("the page of shared files", () => {
  it("tells bytes in units of thousands", () => {
    const words = [0, 1, 999, 1_000, 12_345, 999_499, 999_600, 1_500_000_000, 2e15].map(formatBytes)
    assert.deepStrictEqual(words, [
      "0 bytes",
      "1 byte",
      "999 bytes",
      "1.0 kB",
      "12.3 kB",
      "999 kB",
      "1.0 MB",
      "1.5 GB",
      "2.0 PB"
    ])
  })

  it("has the root at an address without a path", () => {
    assert.deepStrictEqual(directoryView(""), { room: "files", params: {} })
    assert.deepStrictEqual(["a/b/c", "a", ""].map(parentOf), ["a/b", "", ""])
  })

  it("shows what a browser shows without running it, and documents with scripts as text", () => {
    const kinds = [
      ["image/png", "a.png", "image"],
      ["image/svg+xml", "a.svg", "text"],
      ["text/html; charset=utf-8", "a.html", "text"],
      ["application/xhtml+xml", "a.xhtml", "text"],
      ["application/octet-stream", "notes.md", "text"],
      ["application/octet-stream", "a.bin", undefined],
      ["VIDEO/MP4", "a.mp4", "video"],
      ["audio/ogg", "a.ogg", "audio"],
      ["application/pdf", "a.pdf", "pdf"],
      ["application/zip", "a.zip", undefined]
    ] as const
    for (const [type, name, kind] of kinds) assert.strictEqual(previewKindOf(type, name), kind, type)
  })

  it("makes buckets of folders at the root where their names can be a bucket's", () => {
    const at = (path: string) => placeOf(path, undefined)
    assert.deepStrictEqual(at("trip/a.txt"), { directoryId: undefined, bucket: "trip", path: "a.txt" })
    assert.deepStrictEqual(at("a.txt"), { directoryId: undefined, bucket: "uploads", path: "a.txt" })
    const odd = { directoryId: undefined, bucket: "uploads", path: "my trip/a.txt" }
    assert.deepStrictEqual(at("my trip/a.txt"), odd)
    // Names come decomposed from some systems.
    assert.strictEqual(at("U\u0308.txt").path, "Ü.txt")
  })

  it("knows a file again that is chosen from any directory above it, by its size and time as well", () => {
    const look = { size: 5, lastModified: 7, type: "" }
    const upload = { directoryId: undefined, bucket: "trip", path: "day/a.txt", ...look }
    const isIt = (path: string, other: object = {}) => isAgain(upload, path, { ...look, ...other })
    assert.deepStrictEqual(
      ["a.txt", "day/a.txt", "trip/day/a.txt"].map((path) => isIt(path)),
      [true, true, true]
    )
    assert.isFalse(isIt("b/a.txt"))
    assert.isFalse(isIt("xa.txt"))
    assert.isFalse(isIt("a.txt", { size: 6 }))
    assert.isFalse(isIt("a.txt", { lastModified: 8 }))
  })
})
