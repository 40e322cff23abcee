import { gunzipSync } from "node:zlib"
import { crc32 } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { ArchivePlanner } from "#streams/files/archive/ArchivePlan.ts"
import { joinedCrc32 } from "#streams/files/archive/Crc32.ts"
import { StoredGzip } from "#streams/files/archive/StoredGzip.ts"
import { bytesOf, type Member, planOf } from "./PlannedArchive.ts"

const members: fc.Arbitrary<ReadonlyArray<Member>> = fc
  .array(
    fc.record(
      {
        path: fc
          .string({ minLength: 1, maxLength: 300, unit: "grapheme" })
          .map((name) => name.replace(/\/+$/, "_")),
        modifiedSeconds: fc.integer({ min: -10_000, max: 2 ** 40 }),
        content: fc.oneof(
          fc
            .constantFrom(0, 1, 511, 512, 513, 65_535, 65_536, 200_000)
            .map((size) => Buffer.alloc(size, "x")),
          fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes))
        )
      },
      { requiredKeys: ["path", "modifiedSeconds"] }
    )
    // A directory ends with its slash.
  )
  .map((all) => all.map((one) => (one.content === undefined ? { ...one, path: `${one.path}/` } : one)))

describe("the plan of an archive", () => {
  it("knows its length and each byte beforehand, so that any two ranges join to the whole", () => {
    fc.assert(
      fc.property(members, fc.double({ min: 0, max: 1, noNaN: true }), (all, share) => {
        const archive = planOf(all)
        const { sizeBytes } = archive.plan
        const whole = bytesOf(archive, 0, sizeBytes)
        const cut = Math.floor(share * sizeBytes)
        const joined = Buffer.concat([bytesOf(archive, 0, cut), bytesOf(archive, cut, sizeBytes)])
        assert.isTrue(joined.equals(whole))
        // Its sums hold: gunzip checks them.
        const tar = gunzipSync(whole)
        assert.strictEqual(tar.length % 512, 0)
        assert.isTrue(tar.subarray(-1024).equals(Buffer.alloc(1024)))
      }),
      { numRuns: 150 }
    )
  })

  it("answers every single byte, and windows of any length, as the whole has them", () => {
    const archive = planOf([
      { path: "a/" },
      { path: "a/b", content: Buffer.from("b".repeat(700)) },
      { path: "a/empty", content: Buffer.alloc(0) },
      { path: `a/${"ü".repeat(120)}`, content: Buffer.from("é") }
    ])
    const { sizeBytes } = archive.plan
    const whole = bytesOf(archive, 0, sizeBytes)
    for (let at = 0; at < sizeBytes; at++)
      assert.strictEqual(bytesOf(archive, at, at + 1)[0], whole[at], `byte ${at}`)
    for (const length of [7, 512, 1000, 4096]) {
      for (let at = 0; at < sizeBytes; at += length) {
        const to = Math.min(at + length, sizeBytes)
        assert.isTrue(bytesOf(archive, at, to).equals(whole.subarray(at, to)), `${length} bytes at ${at}`)
      }
    }
  })

  it("crosses the blocks of gzip in the middle of heads, contents and padding", () => {
    for (const size of [64_500, 65_000, 65_023, 65_024, 65_535, 131_000, 131_070]) {
      const archive = planOf([
        { path: "one", content: Buffer.alloc(size, "1") },
        { path: "two", content: Buffer.alloc(size, "2") }
      ])
      const { sizeBytes } = archive.plan
      const whole = bytesOf(archive, 0, sizeBytes)
      assert.isTrue(gunzipSync(whole).includes(Buffer.alloc(size, "2")))
      for (let at = 65_400; at < 65_700; at += 3)
        assert.isTrue(bytesOf(archive, at, at + 300).equals(whole.subarray(at, at + 300)))
    }
  })

  it("has another digest where a path, a time or a content differs, and the same where none does", () => {
    const base: ReadonlyArray<Member> = [
      { path: "a/" },
      { path: "a/b", content: Buffer.from("1"), modifiedSeconds: 5 }
    ]
    const digestOf = (...all: ReadonlyArray<Member>): string => planOf(all).plan.digest
    const [directory, file] = base as [Member, Member]
    assert.strictEqual(digestOf(...base), digestOf(...base))
    const others = [
      digestOf(directory, { ...file, content: Buffer.from("2") }),
      digestOf(directory, { ...file, path: "a/c" }),
      digestOf(directory, { ...file, modifiedSeconds: 6 }),
      digestOf({ ...directory, modifiedSeconds: 7 }, file),
      digestOf(directory),
      digestOf()
    ]
    assert.strictEqual(new Set([...others, digestOf(...base)]).size, others.length + 1)
  })

  it("says where each of 100,000 entries is, in some 60 bytes an entry", () => {
    const planner = new ArchivePlanner()
    const sha256 = Buffer.alloc(32, 7)
    for (let n = 0; n < 100_000; n++)
      planner.add({
        path: `a/${String(n).padStart(6, "0")}`,
        modifiedSeconds: 0,
        content: { sha256, sizeBytes: n % 3, crc32: 0 }
      })
    const plan = planner.finish()
    assert.strictEqual(plan.entries, 100_000)
    assert.isBelow(planner.heldBytes, 100_000 * 64 + 512 * 1024)
    const tarBytes = plan.sizeBytes - 18 - 5 * Math.ceil((plan.sizeBytes - 18) / 65_540)
    // One of three is empty, the others have a block of content.
    assert.strictEqual(tarBytes, 100_000 * 512 + 66_666 * 512 + 1024)
    const last = Buffer.alloc(4096)
    const parts = plan.fill(last, plan.sizeBytes - last.length)
    assert.isTrue(last.includes("a/099999"))
    assert.isTrue(parts.every(({ sizeBytes }) => sizeBytes > 0))
  })
})

describe("a stored gzip file", () => {
  it("is longer by 18 bytes, and 5 for each 65,535", () => {
    for (const [bytes, blocks] of [
      [1, 1],
      [65_535, 1],
      [65_536, 2],
      [131_070, 2],
      [2 ** 40, 16_777_473]
    ] as const)
      assert.strictEqual(new StoredGzip(bytes, 0).sizeBytes, bytes + 18 + 5 * blocks)
  })
})

describe("the CRC-32 of joined bytes", () => {
  it("is that of the whole, wherever it is cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000 }), fc.nat(5000), (bytes, at) => {
        const [first, second] = [bytes.subarray(0, at), bytes.subarray(at)]
        assert.strictEqual(joinedCrc32(crc32(first), crc32(second), second.length), crc32(bytes))
      })
    )
  })

  it("is right behind lengths that no 32 bits hold", () => {
    // Joining is associative: 5 GiB of zeros in one step are those in five.
    const gib = 2 ** 30
    const mib = crc32(Buffer.alloc(2 ** 20))
    let one = mib
    for (let bytes = 2 ** 20; bytes < gib; bytes *= 2) one = joinedCrc32(one, one, bytes)
    let five = one
    for (let n = 1; n < 5; n++) five = joinedCrc32(five, one, gib)
    const first = crc32("first")
    let stepwise = first
    for (let n = 0; n < 5; n++) stepwise = joinedCrc32(stepwise, one, gib)
    assert.strictEqual(joinedCrc32(first, five, 5 * gib), stepwise)
  })
})
