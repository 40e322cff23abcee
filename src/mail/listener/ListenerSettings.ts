import { readFileSync } from "node:fs"
import { createSecureContext } from "node:tls"
import type { EnvironmentReader } from "#src/EnvironmentReader.ts"

/** Numbers of the SMTP listener. */
export const listenerLimits = {
  /** connections at once, of all and of one address (of IPv6, the /64); above it 421 */
  mailSmtpConnections: 200,
  mailSmtpConnectionsPerAddress: 20,
  /** a client that says nothing for so long is sent away. Source: RFC 5321, 4.5.3.2.7 */
  mailSmtpIdleMillis: 300_000,
  /** and so is one that takes longer for a message, however often it says something … */
  mailSmtpMessageMillis: 600_000,
  /** … or needs more commands for it … */
  mailSmtpCommands: 500,
  /** … or was refused so often: recipients, messages, logins */
  mailSmtpRefusals: 20,
  /** wrong logins from one address in a minute; above it 454 */
  mailSmtpLoginsPerMinute: 10,
  /** so much is read of a mail to a return path */
  mailSmtpBounceBytes: 256 * 1024,
  /** submissions under way, in fair shares per owner; above it 452 */
  mailSmtpBytes: 128 * 1024 * 1024,
  /** pause between looks at the files of the certificate */
  mailSmtpCertificateMillis: 3_600_000
} as const

/** PEM, of files that are read again: certificates are renewed. */
interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

/** The listener of `MAIL_SMTP_PORT`. */
export interface ListenerSettings {
  /** 0 stands for any that is free, which the log tells */
  readonly port: number
  /** `MAIL_SMTP_TLS_CERT` and `MAIL_SMTP_TLS_KEY`; without them there is no STARTTLS, and no login but from loopback */
  readonly certificate: CertificateFiles | undefined
}

/** Throws where a file cannot be read, or is none of a certificate or its key. */
export const readCertificate = ({
  cert,
  key
}: CertificateFiles): { readonly cert: Buffer; readonly key: Buffer } => {
  const read = { cert: readFileSync(cert), key: readFileSync(key) }
  createSecureContext(read)
  return read
}

/** Undefined: there is no listener. */
export const listenerSettingsFrom = (
  read: EnvironmentReader,
  directory: string
): ListenerSettings | undefined => {
  const port = read.parsed(
    "MAIL_SMTP_PORT",
    (text) =>
      /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535 ? Number(text) : undefined,
    "takes a port from 1 to 65535"
  )
  const cert = read.file("MAIL_SMTP_TLS_CERT", directory)
  const key = read.file("MAIL_SMTP_TLS_KEY", directory)
  const isGiven = (variable: string) => read.text(variable) !== undefined
  for (const [one, other] of [
    ["MAIL_SMTP_TLS_CERT", "MAIL_SMTP_TLS_KEY"],
    ["MAIL_SMTP_TLS_KEY", "MAIL_SMTP_TLS_CERT"]
  ] as const)
    if (isGiven(one) && !isGiven(other)) read.faults.push({ variable: other, fault: `goes with ${one}` })
  const certificate = cert === undefined || key === undefined ? undefined : { cert, key }
  if (certificate !== undefined)
    try {
      readCertificate(certificate)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      read.faults.push({
        variable: "MAIL_SMTP_TLS_CERT",
        fault: `is not a certificate with its key: ${reason}`
      })
    }
  return port === undefined ? undefined : { port, certificate }
}
