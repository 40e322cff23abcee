import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { appendFault, isComplete, type UploadProgress } from "#streams/files/uploads/UploadProgress.ts"

const open: UploadProgress = { kind: "whole", length: 10, offset: 4, isDone: false }
const sent = { offset: 4, length: undefined, bytes: 6 }

describe("bytes that are to be appended", () => {
  const statusOf = (upload: Partial<UploadProgress>, appended: Partial<Parameters<typeof appendFault>[1]>) =>
    appendFault({ ...open, ...upload }, { ...sent, ...appended }, 100)?.status

  it("go on where the upload ends, and not beyond its length", () => {
    assert.isUndefined(statusOf({}, {}))
    assert.isUndefined(statusOf({}, { bytes: 0 }))
    assert.isUndefined(statusOf({}, { bytes: undefined }))
    assert.isUndefined(statusOf({}, { length: 10 }))
    for (const offset of [0, 3, 5]) assert.strictEqual(statusOf({}, { offset }), 409)
    assert.strictEqual(statusOf({}, { bytes: 7 }), 413)
    assert.strictEqual(statusOf({}, { length: 11 }), 400)
    assert.strictEqual(statusOf({ kind: "joined" }, {}), 403)
  })

  it("may tell the length, once, and not less than is there nor more than a file may have", () => {
    const later = { length: null }
    assert.isUndefined(statusOf(later, {}))
    assert.isUndefined(statusOf(later, { length: 10 }))
    assert.strictEqual(statusOf(later, { length: 3 }), 400)
    assert.strictEqual(statusOf(later, { length: 101 }), 413)
    assert.strictEqual(statusOf(later, { bytes: 97 }), 413)
  })

  it("never make an upload longer than its length or the longest file", () => {
    const bytes = fc.integer({ min: 0, max: 50 })
    fc.assert(
      fc.property(
        fc.option(bytes),
        bytes,
        bytes,
        fc.option(bytes, { nil: undefined }),
        (length, offset, size, told) => {
          const upload: UploadProgress = {
            kind: "whole",
            length,
            offset: Math.min(offset, length ?? 50),
            isDone: false
          }
          const fault = appendFault(upload, { offset: upload.offset, length: told, bytes: size }, 40)
          if (fault !== undefined) return
          const most = Math.min(length ?? told ?? 40, 40)
          assert.isAtMost(upload.offset + size, most)
        }
      )
    )
  })
})

describe("an upload", () => {
  it("is complete with all bytes of a length that is known", () => {
    assert.isTrue(isComplete({ length: 0, offset: 0 }))
    assert.isFalse(isComplete({ length: null, offset: 0 }))
    assert.isFalse(isComplete(open))
  })
})
