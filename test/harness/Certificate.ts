import { createSign, generateKeyPairSync } from "node:crypto"
import { isIP } from "node:net"

/** DER of one value: its tag, the length of its content, the content. */
const der = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: ReadonlyArray<Uint8Array>): Buffer => der(0x30, ...parts)
const time = (at: Date): Buffer =>
  der(0x18, Buffer.from(`${at.toISOString().replace(/[-:T]/g, "").slice(0, 14)}Z`))

const ecdsaWithSha256 = sequence(Buffer.from("06082a8648ce3d040302", "hex"))
const commonName = Buffer.from("0603550403", "hex")
const subjectAltName = Buffer.from("0603551d11", "hex")

const alternative = (host: string): Buffer => {
  if (isIP(host) === 4) return der(0x87, Buffer.from(host.split(".").map(Number)))
  return der(0x82, Buffer.from(host))
}

/** A self-signed certificate (RFC 5280) for names and IPv4 addresses, valid for a day; as `ca` it is trusted. */
export const certificateFor = (
  hosts: ReadonlyArray<string>,
  { from = Date.now() - 3_600_000 }: { readonly from?: number } = {}
): { readonly key: string; readonly cert: string } => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const name = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(hosts[0] ?? "")))))
  const alternatives = der(0x04, sequence(...hosts.map(alternative)))
  const signed = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    sequence(time(new Date(from)), time(new Date(from + 86_400_000))),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(sequence(subjectAltName, alternatives)))
  )
  const signature = createSign("sha256").update(signed).sign(privateKey)
  const whole = sequence(signed, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature))
  return {
    key: String(privateKey.export({ type: "pkcs8", format: "pem" })),
    cert: `-----BEGIN CERTIFICATE-----\n${whole.toString("base64").replace(/.{64}/g, "$&\n")}\n-----END CERTIFICATE-----\n`
  }
}
