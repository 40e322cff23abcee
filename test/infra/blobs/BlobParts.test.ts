import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { BlobParts, type Part, type PartTrouble } from "#src/infra/blobs/BlobParts.ts"

let directory = ""
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "parts-"))
})
afterAll(() => rmSync(directory, { recursive: true }))

const made = (name: string, bytes: Buffer): { readonly sha256: string; readonly sizeBytes: number } => {
  writeFileSync(join(directory, name), bytes)
  return { sha256: name, sizeBytes: bytes.length }
}

/** Blobs of at most eight bytes whose names are in `rows` live there; all others are files. */
const rowBytes = 8
const partsOf = (rows: ReadonlyMap<string, Uint8Array> | Error = new Map()): BlobParts =>
  new BlobParts(
    (name) => join(directory, name),
    rowBytes,
    (_, done) => setImmediate(done, rows)
  )

const readAll = <P extends Part>(parts: BlobParts, wanted: ReadonlyArray<P>) =>
  new Promise<PartTrouble<P> | undefined>((resolve) => parts.read(wanted, resolve))

/** The files of the directory that this process has open. */
const openFiles = (): ReadonlyArray<string> =>
  readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(directory) ? [path] : []
    } catch {
      // The one by which the directory of descriptors was read.
      return []
    }
  })

const untilClosed = async (): Promise<void> => {
  while (openFiles().length > 0) await new Promise((resolve) => setTimeout(resolve, 5))
}

const proc = requirement("/proc", () => (existsSync("/proc/self/fd") ? undefined : "this is no Linux"))

describeWith(proc, "parts of blobs", () => {
  it("come into their places, of many blobs at once and of each from anywhere", async () => {
    const parts = partsOf()
    const bytes = Buffer.from(Array.from({ length: 3000 }, (_, n) => n % 251))
    const blobs = Array.from({ length: 40 }, (_, n) => made(`many ${n}`, bytes.subarray(0, 1000 + n)))
    const wanted = blobs.map((blob, n) => ({
      ...blob,
      from: n * 10,
      views: [Buffer.alloc(100), Buffer.alloc(1), Buffer.alloc(blob.sizeBytes - n * 10 - 101)]
    }))
    assert.isUndefined(await readAll(parts, wanted))
    for (const { from, sizeBytes, views } of wanted)
      assert.isTrue(Buffer.concat(views).equals(bytes.subarray(from, sizeBytes)))
    assert.isUndefined(await readAll(parts, []))
    parts.close()
    await untilClosed()
  })

  it("are read on from an open file, which is closed with its last byte, another blob, or the reader", async () => {
    const parts = partsOf()
    const long = made("long", Buffer.from("abcdef"))
    const other = made("other", Buffer.from("123456"))
    const partOf = (blob: typeof long, from: number, length: number) => ({
      ...blob,
      from,
      views: [Buffer.alloc(length)]
    })
    const first = partOf(long, 0, 2)
    await readAll(parts, [first])
    assert.strictEqual(openFiles().length, 1)
    // Its name may go meanwhile.
    rmSync(join(directory, "long"))
    const second = partOf(long, 2, 4)
    assert.isUndefined(await readAll(parts, [second]))
    assert.strictEqual(Buffer.concat([...first.views, ...second.views]).toString(), "abcdef")
    await untilClosed()
    const begun = partOf(other, 1, 1)
    await readAll(parts, [begun])
    await readAll(parts, [partOf(made("third", Buffer.from("xyz")), 0, 1)])
    assert.strictEqual(begun.views[0]?.toString(), "2")
    parts.close()
    await untilClosed()
  })

  it("come from a file that was opened ahead, and from anew where it was not there yet", async () => {
    const parts = partsOf()
    const blob = made("next", Buffer.from("0123456789"))
    const all = () => ({ ...blob, from: 0, views: [Buffer.alloc(10)] })
    parts.openAhead(blob)
    while (openFiles().length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    rmSync(join(directory, "next"))
    const first = all()
    assert.isUndefined(await readAll(parts, [first]))
    assert.strictEqual(first.views[0]?.toString(), "0123456789")
    parts.openAhead(blob)
    const trouble = await readAll(parts, [all(), all()])
    assert.match(String(trouble?.cause), /ENOENT/)
    parts.openAhead(blob)
    await new Promise((resolve) => setTimeout(resolve, 20))
    made("next", Buffer.from("0123456789"))
    assert.isUndefined(await readAll(parts, [all()]))
    await untilClosed()
  })

  it("are not read where another blob comes, and nothing that was opened ahead stays open", async () => {
    const parts = partsOf()
    const [one, two] = [made("one ahead", Buffer.alloc(10)), made("two ahead", Buffer.alloc(10))]
    parts.openAhead(one)
    parts.openAhead(two)
    parts.openAhead(two)
    assert.isUndefined(await readAll(parts, [{ ...one, from: 0, views: [Buffer.alloc(10)] }]))
    parts.close()
    await untilClosed()
  })

  it("come from rows where short blobs live there, beside those that have files", async () => {
    const rows = new Map([["in a row", Buffer.from("12345678")]])
    const file = made("a file", Buffer.from("a short one"))
    const wanted = [
      { sha256: "in a row", sizeBytes: 8, from: 2, views: [Buffer.alloc(1), Buffer.alloc(4)] },
      { ...made("short", Buffer.from("abc")), from: 0, views: [Buffer.alloc(3)] },
      { ...file, from: 2, views: [Buffer.alloc(9)] }
    ]
    const parts = partsOf(rows)
    assert.isUndefined(await readAll(parts, wanted))
    assert.deepStrictEqual(
      wanted.map(({ views }) => Buffer.concat(views).toString()),
      ["34567", "abc", "short one"]
    )
    await untilClosed()
    const away = await readAll(partsOf(new Error("away")), wanted)
    assert.deepStrictEqual([away?.part.sha256, away?.cause.message], ["in a row", "away"])
  })

  it("say which one cannot be read, and why, once nothing is being read any more", async () => {
    const parts = partsOf()
    const well = made("well", Buffer.alloc(10))
    const part = (sha256: string, sizeBytes: number) => ({
      sha256,
      sizeBytes,
      from: 0,
      views: [Buffer.alloc(sizeBytes)]
    })
    const missing = await readAll(parts, [part("well", 10), part("missing", 5), part("well", 10)])
    assert.strictEqual(missing?.part.sha256, "missing")
    assert.match(String(missing?.cause), /ENOENT/)
    const short = await readAll(parts, [part(well.sha256, 11)])
    assert.match(String(short?.cause), /It ends at byte 10/)
    await untilClosed()
  })
})
