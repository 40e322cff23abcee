/** Numbers of SMTP connections. RFC 5321 4.5.3.2 has the times that a client should wait at least. */
export const smtpLimits = {
  /** connections to the relay at once; further messages wait */
  smtpConnections: 10,
  /** connections to the servers of one domain at once, without a relay … */
  smtpConnectionsPerDomain: 2,
  /** … and so many of its servers are tried for a message */
  smtpHostsPerDomain: 5,
  /** messages of one connection, then it is closed with QUIT */
  smtpMessagesPerConnection: 100,
  /** a connection without a message is closed after this */
  smtpIdleMillis: 10_000,
  /** for connecting, the greeting, EHLO and STARTTLS together */
  smtpOpeningMillis: 60_000,
  /** for the login, and for RSET */
  smtpCommandMillis: 60_000,
  /** for MAIL, RCPT and DATA together, which go out at once where the server takes that (RFC 2920) */
  smtpEnvelopeMillis: 120_000,
  /** for the message without its final dot … */
  smtpDataMillis: 600_000,
  /** … and for the reply to that dot */
  smtpEndMillis: 300_000,
  /** for the reply to QUIT */
  smtpQuitMillis: 1_000,
  /** the longest reply of a server; above it the connection is closed */
  smtpReplyBytes: 64 * 1024,
  /** the part of a reply that is kept */
  smtpReplyCharacters: 500
} as const

export type SmtpLimits = { readonly [Name in keyof typeof smtpLimits]: number }
