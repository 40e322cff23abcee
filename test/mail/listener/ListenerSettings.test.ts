import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { EnvironmentReader } from "#src/EnvironmentReader.ts"
import { listenerSettingsFrom } from "#src/mail/listener/ListenerSettings.ts"
import { certificateFor } from "#test/harness/Certificate.ts"

const read = (environment: Readonly<Record<string, string>>) => {
  const reader = new EnvironmentReader(environment)
  const settings = listenerSettingsFrom(reader, "/")
  return { settings, faults: reader.faults.map(({ variable }) => variable) }
}

const directory = mkdtempSync(join(tmpdir(), "listener-"))
const file = (name: string, text: string): string => {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}
const one = certificateFor(["127.0.0.1"])
const MAIL_SMTP_TLS_CERT = file("cert.pem", one.cert)
const MAIL_SMTP_TLS_KEY = file("key.pem", one.key)

describe("the settings of the SMTP listener", () => {
  it("are a port, and a certificate with its key or neither", () => {
    assert.deepStrictEqual(read({}), { settings: undefined, faults: [] })
    assert.deepStrictEqual(read({ MAIL_SMTP_PORT: "2525" }), {
      settings: { port: 2525, certificate: undefined },
      faults: []
    })
    assert.deepStrictEqual(
      read({ MAIL_SMTP_PORT: "25", MAIL_SMTP_TLS_CERT, MAIL_SMTP_TLS_KEY }).settings?.certificate,
      { cert: MAIL_SMTP_TLS_CERT, key: MAIL_SMTP_TLS_KEY }
    )
    for (const port of ["0", "65536", "smtp", "25.5"])
      assert.deepStrictEqual(read({ MAIL_SMTP_PORT: port }).faults, ["MAIL_SMTP_PORT"])
    assert.deepStrictEqual(read({ MAIL_SMTP_TLS_CERT }).faults, ["MAIL_SMTP_TLS_KEY"])
    assert.deepStrictEqual(read({ MAIL_SMTP_TLS_KEY }).faults, ["MAIL_SMTP_TLS_CERT"])
  })

  it("are refused with a file that is not there, is no certificate, or has the key of another", () => {
    const faultsOf = (files: Readonly<Record<string, string>>) =>
      read({ MAIL_SMTP_PORT: "25", ...files }).faults
    const absent = join(directory, "absent.pem")
    assert.deepStrictEqual(faultsOf({ MAIL_SMTP_TLS_CERT: absent, MAIL_SMTP_TLS_KEY }), [
      "MAIL_SMTP_TLS_CERT"
    ])
    const other = file("other.pem", certificateFor(["127.0.0.1"]).key)
    for (const files of [
      { MAIL_SMTP_TLS_CERT, MAIL_SMTP_TLS_KEY: other },
      { MAIL_SMTP_TLS_CERT: file("text.pem", "no certificate"), MAIL_SMTP_TLS_KEY }
    ])
      assert.deepStrictEqual(faultsOf(files), ["MAIL_SMTP_TLS_CERT"])
  })
})
