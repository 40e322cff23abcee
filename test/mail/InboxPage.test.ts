import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { live, makeStage } from "./Stage.ts"

const policy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox"

const linkStyle = "<style>:where(a[data-href]){color:#00e;text-decoration:underline}</style>"

/** A person, and the page of a mail that they sent to the sandbox. */
const makePages = Effect.gen(function* () {
  const { get, key, read, sent } = yield* makeStage
  const pathOf = Effect.fnUntraced(function* (fields: object) {
    yield* read(yield* sent(fields), 30)
    const { emails } = (yield* get("/inbox?limit=1")).json as { emails: ReadonlyArray<{ id: string }> }
    return `/inbox/${emails[0]?.id}/html`
  })
  return { get, key, pathOf }
})

const textOf = ({ bytes }: { readonly bytes: Uint8Array }): string => Buffer.from(bytes).toString()

/** The HTML of the mail, out of the attribute that it is in. */
const framedIn = (page: string): string =>
  (/<iframe sandbox title="[^"]*" srcdoc="([^"]*)"><\/iframe>/.exec(page)?.[1] ?? "none")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")

layer(TestServer.shared, live)("the HTML of a mail of the sandbox", (it) => {
  it.effect("is in a frame of a page whose policy lets it load and reach nothing", () =>
    Effect.gen(function* () {
      const { get, pathOf } = yield* makePages
      const html = `<!DOCTYPE html><p title="a&quot;b">1 &lt; 2</p></iframe><script>1</script>`
      const answer = yield* get(yield* pathOf({ html }))
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers.get("content-type"), "text/html; charset=utf-8")
      assert.strictEqual(answer.headers.get("content-security-policy"), policy)
      assert.strictEqual(answer.headers.get("x-dns-prefetch-control"), "off")
      assert.strictEqual(answer.headers.get("cache-control"), "private, no-store")
      assert.strictEqual(
        framedIn(textOf(answer)).trim(),
        html.replace("<!DOCTYPE html>", `<!DOCTYPE html>${linkStyle}`)
      )
    })
  )

  it.effect("has no links and no frames: a browser connects ahead for them, which no policy stops", () =>
    Effect.gen(function* () {
      const { get, pathOf } = yield* makePages
      const html = `<link rel=preconnect HREF=//a.test><a\nhref\n=x>1</a><a/href=y>2</a><svg><a xlink:href="z">3</a></svg><IFRAME src=v></iframe><frame/src=w>`
      const framed = framedIn(textOf(yield* get(yield* pathOf({ html }))))
      assert.strictEqual(
        framed.trim(),
        `${linkStyle}${html.replaceAll(/href/gi, "data-href").replaceAll(/<(?=i?frame)/gi, "<x-")}`
      )
    })
  )

  it.effect("of a mail of 1 MiB is read in a thread", () =>
    Effect.gen(function* () {
      const { get, pathOf } = yield* makePages
      const content = Buffer.alloc(1024 * 1024).toString("base64")
      const path = yield* pathOf({ html: "<p>Large</p>", attachments: [{ filename: "a.bin", content }] })
      assert.include(framedIn(textOf(yield* get(path))), "<p>Large</p>")
    })
  )

  it.effect("is 404 where the mail has none, and to others", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makePages, yield* makePages]
      assert.strictEqual((yield* one.get(yield* one.pathOf({ text: "alone" }))).status, 404)
      assert.strictEqual((yield* other.get(yield* one.pathOf({ html: "<p>1</p>" }))).status, 404)
    })
  )

  it.effect("and files of the room open by the cookie of a session, for frames and downloads", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { key, pathOf } = yield* makePages
      const path = yield* pathOf({ html: "<p>1</p>" })
      const signedIn = yield* ask("POST", "/api/session", { key })
      const cookie = (signedIn.headers.get("set-cookie") ?? "").replace(/;.*/, "")
      const byCookie = (of: string) => ask("GET", `/api/v1/emails${of}`, { key: "", headers: { cookie } })
      assert.strictEqual((yield* byCookie(path)).status, 200)
      assert.strictEqual((yield* byCookie("/suppressions.csv")).status, 200)
      assert.strictEqual((yield* byCookie("/suppressions")).status, 401)
    })
  )
})
