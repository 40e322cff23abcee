import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { ChecksumCheck, readChecksum } from "#streams/files/uploads/UploadChecksum.ts"
import { methodOf, readBytes, readKind, readLength } from "#streams/files/uploads/UploadHeaders.ts"
import { readMetadata } from "#streams/files/uploads/UploadMetadata.ts"
import { metadataOf } from "./TusClient.ts"

const headers =
  (values: Readonly<Record<string, string>>) =>
  (name: string): string =>
    values[name] ?? ""

/** The text of a fault, else the value. */
const read = <A>(result: Result.Result<A, { readonly field: string; readonly text: string }>) =>
  Result.match(result, { onFailure: ({ field, text }) => `${field}: ${text}`, onSuccess: (value) => value })

const base64 = (text: string): string => Buffer.from(text).toString("base64")
const part = `upl_${"a".repeat(22)}`

describe("numbers of bytes", () => {
  it("are whole and exact, or named in the fault", () => {
    const offset = (text: string) => read(readBytes(headers({ "upload-offset": text }), "Upload-Offset"))
    assert.strictEqual(offset(""), undefined)
    assert.strictEqual(offset("0"), 0)
    assert.strictEqual(offset("9007199254740991"), 9_007_199_254_740_991)
    for (const text of ["-1", "+1", "1.5", "1e3", "0x10", " 1", "9007199254740993", "1".repeat(30), "١"])
      assert.strictEqual(offset(text), "Upload-Offset: expected a number of bytes", text)
  })

  it("are told at once or later, never both", () => {
    const length = (values: Readonly<Record<string, string>>) => read(readLength(headers(values)))
    assert.strictEqual(length({ "upload-length": "7" }), 7)
    assert.strictEqual(length({ "upload-defer-length": "1" }), null)
    assert.match(String(length({})), /^Upload-Length: expected a number/)
    assert.match(String(length({ "upload-length": "x" })), /^Upload-Length: /)
    assert.match(String(length({ "upload-defer-length": "0" })), /^Upload-Defer-Length: expected 1/)
    assert.match(String(length({ "upload-length": "7", "upload-defer-length": "1" })), /not both$/)
  })
})

describe("the kind of an upload", () => {
  const kind = (concat: string) => read(readKind(concat, "/api/uploads/", 3))

  it("is a whole file, a part, or made of parts named by path or address", () => {
    assert.deepStrictEqual(kind(""), { _tag: "Whole" })
    assert.deepStrictEqual(kind("partial"), { _tag: "Part" })
    const other = `upl_${"b".repeat(22)}`
    const joined = { _tag: "Joined", parts: [part, other] } as const
    assert.deepStrictEqual(kind(`final;/api/uploads/${part} https://a.example/api/uploads/${other}`), joined)
    assert.deepStrictEqual(kind(`final; /api/uploads/${part}  /api/uploads/${other} `), joined)
  })

  it("is a fault where it names nothing, something else, or a part twice", () => {
    const wrong = ["Partial", "final", "final;", `final;/files/${part}`, `final;/api/uploads/${part}/x`]
    for (const concat of [...wrong, `final;/api/uploads/${part} /api/uploads/${part}`])
      assert.match(String(kind(concat)), /^Upload-Concat: /, concat)
    const many = [..."abcd"].map((letter) => `/api/uploads/upl_${letter.repeat(22)}`).join(" ")
    assert.strictEqual(kind(`final;${many}`), "Upload-Concat: expected at most 3 partial uploads")
  })
})

describe("metadata", () => {
  it("comes back as it was made, in any script", () => {
    const keys = fc.stringMatching(/^[!-+\--~]{1,20}$/)
    const values = fc.string({ unit: "grapheme" }).filter((text) => text.isWellFormed())
    fc.assert(
      fc.property(fc.dictionary(keys, values), (fields) => {
        const found = readMetadata(metadataOf(fields), 1_000_000)
        assert.deepStrictEqual(
          Result.getOrThrow(found),
          new Map(Object.entries(fields)),
          JSON.stringify(fields)
        )
      })
    )
  })

  it("may have keys without values, and values that are no text, which are left out", () => {
    const values = readMetadata(
      `private,name ${base64("ü")} , bytes ${Buffer.from([255]).toString("base64")}`,
      999
    )
    assert.deepStrictEqual(
      Result.getOrThrow(values),
      new Map([
        ["private", ""],
        ["name", "ü"]
      ])
    )
  })

  it("is a fault where it is cut off, twice there, or too long", () => {
    const wrong = ["a b,", "a *", "a YQ=", "a Y", "ä YQ==", "a YQ== YQ==", "a YQ==,a YQ==", ",", "a\tYQ=="]
    for (const header of wrong)
      assert.match(String(read(readMetadata(header, 99))), /^Upload-Metadata: /, header)
    assert.strictEqual(read(readMetadata("a".repeat(100), 99)), "Upload-Metadata: expected at most 99 bytes")
  })
})

describe("a checksum", () => {
  const sums = {
    md5: "kAFQmDzST7DWlj99KOF/cg==",
    sha1: "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=",
    sha256: "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
    crc32: "NSRBwg=="
  }

  it("is that of the bytes, however they come", () => {
    for (const [algorithm, digest] of Object.entries(sums)) {
      const checksum = Result.getOrThrow(readChecksum(`${algorithm} ${digest}`))
      assert.isDefined(checksum, algorithm)
      if (checksum === undefined) continue
      for (const pieces of [["abc"], ["a", "", "bc"], ["ab"]]) {
        const check = new ChecksumCheck(checksum)
        for (const piece of pieces) check.update(Buffer.from(piece))
        assert.strictEqual(check.isGood(), pieces.join("") === "abc", algorithm)
      }
    }
  })

  it("is a fault of an algorithm that is not known, or with another number of bytes", () => {
    assert.strictEqual(read(readChecksum("")), undefined)
    assert.match(String(read(readChecksum("sha3 AA=="))), /expected one of sha256, sha512, sha1, md5, crc32$/)
    for (const header of ["sha1", "sha1 AA==", `sha1 ${sums.sha1} x`, `md5 ${sums.sha1}`, "constructor AA=="])
      assert.match(String(read(readChecksum(header))), /^Upload-Checksum: /, header)
  })
})

describe("a method", () => {
  it("is the one of X-HTTP-Method-Override, of POST alone", () => {
    assert.strictEqual(methodOf("POST", " patch "), "PATCH")
    assert.strictEqual(methodOf("POST", ""), "POST")
    assert.strictEqual(methodOf("GET", "DELETE"), "GET")
  })
})
