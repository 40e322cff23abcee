import { assert, describe, it } from "@effect/vitest"
import type { BodyEnd, RawBody } from "#src/front/RawRoute.ts"
import { type FormFault, MultipartBody } from "#src/http/MultipartBody.ts"

const boundary = "--b0undary"
const contentType = `multipart/form-data; boundary=${boundary}`

/** A body that comes in these pieces, each of them in the place of the one before. */
const bodyOf = (
  pieces: ReadonlyArray<string>,
  end: BodyEnd = "complete",
  encoding: BufferEncoding = "utf8"
): RawBody & { pulled: number } => {
  let last = Buffer.alloc(0)
  const body = {
    declaredBytes: undefined,
    pulled: 0,
    pull: () => {
      last.fill(255)
      const piece = pieces[body.pulled]
      if (piece === undefined) return Promise.resolve(end)
      body.pulled++
      last = Buffer.from(piece, encoding)
      return Promise.resolve(last)
    }
  }
  return body
}

interface Read {
  readonly parts: ReadonlyArray<{
    readonly name: string
    readonly filename: string | undefined
    readonly type: string
    readonly text: string
  }>
  readonly fault?: FormFault
}

const latin = (pieces: ReadonlyArray<string>): RawBody => bodyOf(pieces, "complete", "latin1")

const read = async (body: RawBody, type = contentType, parts = 20_000, bytes = Infinity): Promise<Read> => {
  const form = new MultipartBody(body, type, { parts, bytes })
  const seen: Array<{ name: string; filename: string | undefined; type: string; text: string }> = []
  let ended = 0
  for (;;) {
    const event = await form.next()
    if (event._tag === "Part") {
      const { contentType: partType, filename, name } = event.part
      seen.push({ name, filename, type: partType, text: "" })
    } else if (event._tag === "Bytes") {
      const last = seen.at(-1)
      assert.isDefined(last)
      if (last !== undefined) last.text += Buffer.from(event.bytes).toString("latin1")
    } else if (event._tag === "PartEnd") ended++
    else if (event._tag === "Fault") {
      assert.deepStrictEqual(await form.next(), event)
      return { parts: seen, fault: event.fault }
    } else {
      assert.strictEqual(ended, seen.length)
      assert.deepStrictEqual(await form.next(), event)
      return { parts: seen }
    }
  }
}

const part = (name: string, text: string, more = ""): string =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${text}\r\n`
const close = `--${boundary}--\r\n`

const form =
  part("title", "Grüße".replaceAll("ü", "u")) +
  part(
    "file",
    "\r\n--\r\n--b0\r\n\r\n",
    '; filename="a b.txt"\r\nContent-Type: text/plain; charset=utf-8\r\nX-More: 1'
  ) +
  part("empty", "") +
  close

const expected = [
  { name: "title", filename: undefined, type: "text/plain", text: "Gruße" },
  { name: "file", filename: "a b.txt", type: "text/plain", text: "\r\n--\r\n--b0\r\n\r\n" },
  { name: "empty", filename: undefined, type: "text/plain", text: "" }
].map((one) => ({ ...one, text: Buffer.from(one.text).toString("latin1") }))

describe("a form that is read as it comes", () => {
  it("gives its parts and their bytes", async () => {
    assert.deepStrictEqual(await read(bodyOf([form])), { parts: expected })
    assert.deepStrictEqual(await read(bodyOf([`preamble\r\n${form}epilogue`])), { parts: expected })
  })

  it("gives the same wherever it is cut, at one place, and at all", async () => {
    const bytes = Buffer.from(form).toString("latin1")
    for (let at = 1; at < bytes.length; at++) {
      const pieces = [bytes.slice(0, at), bytes.slice(at)]
      const answer = await read(latin(pieces))
      assert.deepStrictEqual(answer, { parts: expected }, `cut at ${at}`)
    }
    assert.deepStrictEqual(await read(latin([...bytes])), { parts: expected })
  })

  it("looks at no piece again once the next one is there, be it long", async () => {
    const long = "x".repeat(30_000)
    const more = `\r\nContent-Type: text/plain\r\nX-More: ${"y".repeat(5_000)}`
    const whole = part("a", long) + part("b", "z", more) + close
    const begun = part("a", long).length
    // The head of the second part at the end of a long piece, and at the ends of two.
    for (let at = begun - 60; at < begun + 200; at++) {
      for (const pieces of [[whole.slice(at)], [whole.slice(at, at + 4_000), whole.slice(at + 4_000)]]) {
        // The parser copies the first piece, and one behind what could be a boundary.
        const { fault, parts } = await read(bodyOf([whole.slice(0, 100), whole.slice(100, at), ...pieces]))
        assert.isUndefined(fault, `cut at ${at}`)
        assert.deepStrictEqual(
          parts.map(({ name, text, type }) => [name, type, text]),
          [
            ["a", "text/plain", long],
            ["b", "text/plain", "z"]
          ],
          `cut at ${at}`
        )
      }
    }
  })

  it("keeps what it looks at again from forms that are read at the same time", async () => {
    const long = "x".repeat(30_000)
    const more = `\r\nX-More: ${"y".repeat(500)}`
    for (const cut of [20, 53, 54, 200]) {
      const readers = ["a", "b", "c"].map((name) => {
        const first = part(`${name}1`, long)
        const whole = first + part(`${name}2`, long, more) + close
        const at = first.length + cut
        const pieces = [whole.slice(0, 100), whole.slice(100, at), whole.slice(at)]
        return new MultipartBody(bodyOf(pieces), contentType, { parts: 10, bytes: Infinity })
      })
      const names: Array<string> = []
      for (let ended = 0; ended < readers.length;) {
        for (const reader of readers) {
          const event = await reader.next()
          if (event._tag === "Part") names.push(event.part.name)
          else if (event._tag === "End") ended++
          else assert.notStrictEqual(event._tag, "Fault", `cut at ${cut}`)
        }
      }
      assert.deepStrictEqual(new Set(names), new Set(["a1", "b1", "c1", "a2", "b2", "c2"]), `cut at ${cut}`)
    }
  })

  it("pulls no more than is asked of it", async () => {
    const body = bodyOf([part("a", "x".repeat(100)), part("b", "y"), close])
    const reader = new MultipartBody(body, contentType, { parts: 10, bytes: 1000 })
    assert.strictEqual((await reader.next())._tag, "Part")
    assert.strictEqual(body.pulled, 1)
  })

  it("keeps boundaries within boundaries apart", async () => {
    const outer = "outer"
    const nested = `--inner\r\nContent-Disposition: form-data; name="x"\r\n\r\n--oute\r\n--outr--\r\n--inner--\r\n`
    const text = `--${outer}\r\nContent-Disposition: form-data; name="mail"; filename="m"\r\n\r\n${nested}\r\n--${outer}--\r\n`
    for (const pieces of [[text], [...text]]) {
      assert.deepStrictEqual((await read(bodyOf(pieces), `multipart/form-data; boundary="${outer}"`)).parts, [
        { name: "mail", filename: "m", type: "application/octet-stream", text: nested }
      ])
    }
    // Almost the boundary, over and over.
    const almost = `\r\n--${boundary.slice(0, -1)}`.repeat(20_000)
    const [one] = (
      await read(bodyOf([part("f", almost).slice(0, 100_001), part("f", almost).slice(100_001), close]))
    ).parts
    assert.strictEqual(one?.text, almost)
  })

  it("takes ten thousand parts, in one piece or many, and says where there are more than allowed", async () => {
    const many = Array.from({ length: 10_000 }, (_, index) => part(`p${index}`, String(index)))
    for (const pieces of [[many.join("") + close], [...many, close]]) {
      const { fault, parts } = await read(bodyOf(pieces))
      assert.isUndefined(fault)
      assert.strictEqual(parts.length, 10_000)
      assert.deepInclude(parts[9_999], { name: "p9999", text: "9999" })
    }
    assert.deepInclude(await read(bodyOf([many.join("") + close]), contentType, 9_999), {
      fault: "tooManyParts"
    })
  })

  it("is malformed without an end, without a boundary, and with a head that is none or has no end", async () => {
    const faults: ReadonlyArray<readonly [string, string, string?]> = [
      ["no end", part("a", "x")],
      ["cut in a part", part("a", "x").slice(0, -4)],
      ["cut in a head", part("a", "x").slice(0, 40)],
      ["nothing", ""],
      ["no form", "hello"],
      ["no boundary", form, "multipart/form-data"],
      ["no name", `--${boundary}\r\nContent-Disposition: form-data\r\n\r\nx\r\n${close}`],
      ["no disposition", `--${boundary}\r\nContent-Type: text/plain\r\n\r\nx\r\n${close}`],
      ["another disposition", `--${boundary}\r\nContent-Disposition: other; name="x"\r\n\r\nx\r\n${close}`],
      ["a head that is none", `--${boundary}\r\nno head\r\n\r\nx\r\n${close}`],
      ["a long head", part("a", "x", `\r\nX-Long: ${"y".repeat(20_000)}`) + close],
      ["many lines", part("a", "x", "\r\nX-A: 1".repeat(200)) + close]
    ]
    for (const [what, text, type] of faults) {
      assert.strictEqual((await read(bodyOf([text]), type)).fault, "malformed", what)
      if (text.length < 1000)
        assert.strictEqual((await read(bodyOf([...text]), type)).fault, "malformed", what)
    }
  })

  it("has at most so many bytes, what is around its parts included", async () => {
    const { length } = Buffer.from(form)
    assert.isUndefined((await read(bodyOf([form]), contentType, 10, length)).fault)
    assert.strictEqual((await read(bodyOf([form]), contentType, 10, length - 1)).fault, "tooLong")
    const reader = new MultipartBody(bodyOf([form, "epilogue"]), contentType, {
      parts: 10,
      bytes: length + 7
    })
    while ((await reader.next())._tag !== "End");
    assert.strictEqual(await reader.drain(), "tooLong")
  })

  it("ends as its body does", async () => {
    for (const end of ["gone", "slow", "tooLong"] as const)
      assert.strictEqual((await read(bodyOf([part("a", "x")], end))).fault, end)
  })
})
