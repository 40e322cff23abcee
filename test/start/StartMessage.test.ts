import { assert, describe, it } from "@effect/vitest"
import { commandsOf, modelsOf, startMessage, type Started } from "#src/StartMessage.ts"

const started: Started = {
  version: "1.2.3",
  url: "http://127.0.0.1:8080",
  dataDir: "/srv/it's here",
  adminKey: { _tag: "New", key: "sk_secret" },
  models: "made up",
  standby: undefined,
  elapsedMillis: 1234
}

describe("the start message", () => {
  it("shows the URLs, and the admin key at the first boot only", () => {
    const first = startMessage(started)
    assert.match(first, /Console +http:\/\/127\.0\.0\.1:8080\/\n/)
    assert.include(first, "http://127.0.0.1:8080/docs")
    assert.include(first, "sk_secret")
    const later = startMessage({ ...started, adminKey: { _tag: "Kept" } })
    assert.notInclude(later, "sk_")
    assert.match(later, /Admin key +in \/srv\/it's here\/admin\.json\n/)
  })

  it("names no admin.json where that has no key, but the way to one", () => {
    const message = startMessage({ ...started, adminKey: { _tag: "Nowhere" } })
    assert.match(message, /Admin key +not known here; .*admin key --new/)
    assert.notInclude(message, "readFileSync")
  })

  it("says where models come from, without a password", () => {
    assert.include(modelsOf(undefined), "sandbox")
    assert.strictEqual(modelsOf("https://me:secret@router.example/api/v1"), "those of router.example/api/v1")
    assert.notInclude(startMessage({ ...started, models: undefined }), "Models")
  })

  it("says why another process counts", () => {
    assert.match(
      startMessage({ ...started, standby: "another counts" }),
      /Analytics +standby: another counts\n/
    )
    assert.notInclude(startMessage(started), "Analytics")
  })

  it("prints commands that survive any path and hold no key", () => {
    const [create, send, read] = commandsOf(started)
    assert.include(create, String.raw`'/srv/it'\''s here/admin.json'`)
    for (const command of [create, send, read]) assert.notInclude(command, "sk_secret")
  })
})
