const version = "13"

/** A WebSocket handshake by RFC 6455 4.2.1; uWebSockets.js looks only at the length of the key. */
export const isHandshake = (header: (lowerCaseName: string) => string): boolean =>
  header("upgrade").toLowerCase() === "websocket" &&
  upgradeOption.test(header("connection")) &&
  header("sec-websocket-version") === version &&
  key.test(header("sec-websocket-key"))

/** With a 426 (RFC 9110 15.5.22; RFC 6455 4.4). */
export const upgradeHeaders: ReadonlyArray<readonly [string, string]> = [
  ["Upgrade", "websocket"],
  ["Connection", "Upgrade"],
  ["Sec-WebSocket-Version", version]
]

const upgradeOption = /(?:^|,)\s*upgrade\s*(?:,|$)/i
const key = /^[+/0-9A-Za-z]{22}==$/
