import { assert, describe, it } from "@effect/vitest"
import { contentDisposition, safeFilename } from "#src/http/ContentDisposition.ts"

describe("a file's name", () => {
  it("loses folders, control and reserved characters, and marks that turn text around", () => {
    for (const [sent, stored] of [
      ["report.pdf", "report.pdf"],
      ["/etc/passwd", "passwd"],
      ["..\\..\\windows\\system.ini", "system.ini"],
      ["a\r\nSet-Cookie: x", "a__Set-Cookie_ x"],
      ['he said "hi".txt', "he said _hi_.txt"],
      ["exe\u202Efdp.scr", "exe_fdp.scr"],
      ["\ud800.txt", "\ufffd.txt"],
      ["  spaces.txt ", "spaces.txt"],
      ["", "file"],
      [".", "file"],
      ["..", "file"],
      ["a/", "file"],
      ["Résumé – 履歴書 🙂.pdf", "Résumé – 履歴書 🙂.pdf"]
    ] as const) {
      assert.strictEqual(safeFilename(sent), stored, JSON.stringify(sent))
    }
  })

  it("is cut to 255 bytes of whole characters, and keeps its extension", () => {
    const long = safeFilename(`${"é".repeat(400)}.tar`)
    assert.isAtMost(Buffer.byteLength(long), 255)
    assert.match(long, /^é+\.tar$/)
    assert.strictEqual(safeFilename("a".repeat(256)), "a".repeat(255))
    assert.strictEqual(safeFilename(`${"a".repeat(251)}.txt`), `${"a".repeat(251)}.txt`)
  })
})

describe("Content-Disposition", () => {
  it("gives a plain name as it is (RFC 6266)", () => {
    assert.strictEqual(contentDisposition("inline", "report 1.pdf"), 'inline; filename="report 1.pdf"')
  })

  it("gives any other name twice: readable in ASCII, exact by RFC 8187", () => {
    assert.strictEqual(
      contentDisposition("attachment", "naïve (1) – 50%.txt"),
      `attachment; filename="na_ve (1) _ 50_.txt"; filename*=UTF-8''na%C3%AFve%20%281%29%20%E2%80%93%2050%25.txt`
    )
  })

  it("is a header's value whatever was sent", () => {
    for (const sent of ['"; filename="evil.exe', "\u0000\u0007\r\n", "🙂'*()%", "\udfff"]) {
      const value = contentDisposition("inline", safeFilename(sent))
      assert.match(value, /^inline; filename="[ !#-~]*"(; filename\*=UTF-8''[\w%!#$&+\-.^`|~]+)?$/)
    }
  })
})
