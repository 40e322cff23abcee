import { gzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, live, makeStage } from "../Stage.ts"
import { openProject } from "./SubscriberStage.ts"

const html = { accept: "text/html" }
const textOf = ({ bytes }: { readonly bytes: Uint8Array }) => Buffer.from(bytes).toString()

layer(TestServer.shared, live)("pages of subscribers", (it) => {
  it.effect("are in no index, send no address on, and take nothing from elsewhere", () =>
    Effect.gen(function* () {
      const { link, ask } = yield* openProject(yield* makeStage)
      const missing = ["/n/join/x", "/n/confirm/x"]
      for (const path of [`/n/join/${link}`, "/n/me", ...missing]) {
        const { headers, status } = yield* ask("GET", path, { key: "", headers: html })
        assert.strictEqual(status, missing.includes(path) ? 404 : 200, path)
        const policy = headers.get("content-security-policy") ?? ""
        for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"])
          assert.include(policy, part)
        assert.notMatch(policy, /unsafe|https?:|\*|data:/)
        assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
        assert.strictEqual(headers.get("x-robots-tag"), "noindex, nofollow")
        assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
        assert.match(headers.get("cache-control") ?? "", /^private/)
        assert.match(headers.get("content-type") ?? "", /^text\/html/)
      }
    })
  )

  it.effect("are under 30 KB with all that they load, and load it from this server", () =>
    Effect.gen(function* () {
      const { link, ask } = yield* openProject(yield* makeStage)
      for (const path of [`/n/join/${link}`, "/n/me"]) {
        const page = textOf(yield* ask("GET", path, { key: "", headers: html }))
        const loaded = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, address = ""]) => address)
        for (const address of loaded) assert.match(address, /^\/n\//, address)
        const files = new Set([
          ...loaded.filter((address) => address !== "/n/me"),
          "/n/browser.js",
          "/n/sw.js"
        ])
        let bytes = gzipSync(page).length
        for (const file of files) {
          const answer = yield* ask("GET", file, { key: "" })
          assert.strictEqual(answer.status, 200, file)
          bytes += file.endsWith(".png") ? answer.bytes.length : gzipSync(answer.bytes).length
        }
        assert.isBelow(bytes, 30 * 1024, path)
        assert.notMatch(page, / on[a-z]+="|<style|style="|javascript:/)
      }
    })
  )

  it.effect("show names as text, whatever is in them", () =>
    Effect.gen(function* () {
      const name = `<img src=x onerror=alert(1)>"'&\u202egpj.exe`
      const { link, ask } = yield* openProject(yield* makeStage, {
        name,
        slug: "hostile",
        description: "<script>alert(1)</script>\n\u202e</p>"
      })
      const page = textOf(yield* ask("GET", `/n/join/${link}`, { key: "", headers: html }))
      assert.notInclude(page, "<img src=x")
      assert.notInclude(page, "<script>")
      assert.notInclude(page, "\u202e")
      assert.include(page, "&lt;img src=x onerror=alert(1)&gt;&quot;'&amp;gpj.exe")
    })
  )

  it.effect("of a project that is closed are 410, and 404 once its link was replaced or it is gone", () =>
    Effect.gen(function* () {
      const stage = yield* makeStage
      const { ask, id, link } = yield* openProject(stage)
      const page = (path: string) =>
        Effect.map(ask("GET", path, { key: "", headers: html }), (answer) => [
          answer.status,
          /<h1>(.*?)<\/h1>/.exec(textOf(answer))?.[1]
        ])
      const change = (json: object) => ask("PATCH", `${api}/projects/${id}`, { key: stage.key, json })
      yield* change({ joining: "closed" })
      assert.deepStrictEqual(yield* page(`/n/join/${link}`), [410, "This project is closed"])
      yield* change({ joining: "link" })
      yield* ask("POST", `${api}/projects/${id}/join-link`, { key: stage.key })
      assert.deepStrictEqual(yield* page(`/n/join/${link}`), [404, "No project is here"])
      for (const guess of ["0".repeat(40), link.slice(1), "%E2%82%AC", `${link}x`])
        assert.deepStrictEqual(yield* page(`/n/join/${guess}`), [404, "No project is here"])
    })
  )

  it.effect("are an app on a home screen, which begins with the page that it was made of", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { headers, json, bytes } = yield* ask("GET", "/n/manifest.webmanifest", { key: "" })
      assert.strictEqual(headers.get("content-type"), "application/manifest+json")
      const manifest = (json ?? JSON.parse(Buffer.from(bytes).toString())) as Record<string, unknown>
      assert.deepInclude(manifest, { scope: "/n/", display: "standalone" })
      assert.notProperty(manifest, "start_url")
      const worker = yield* ask("GET", "/n/sw.js", { key: "" })
      assert.match(worker.headers.get("content-type") ?? "", /^text\/javascript/)
      assert.strictEqual(
        worker.headers.get("content-security-policy"),
        "default-src 'none'; connect-src 'self'; img-src 'self'"
      )
      for (const [method, path] of [
        ["POST", "/n/me"],
        ["DELETE", "/n/sw.js"],
        ["PUT", "/n/confirm/x"]
      ] as const)
        assert.strictEqual((yield* ask(method, path, { key: "" })).status, 405, path)
    })
  )
})
