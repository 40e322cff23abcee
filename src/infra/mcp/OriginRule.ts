import type { Config } from "#src/Config.ts"

/** Names by which a browser on the same machine reaches a listener. */
const loopbackNames = ["localhost", "127.0.0.1", "[::1]"]

/**
 * Whether a page of this origin may ask: that of `BASE_URL` (else the listener's own), of the listener's loopback names, or
 * of `CORS_ORIGINS`. Never compared with `Host`: a name that was rebound to this machine is in both. A request without
 * an origin comes from no page.
 */
export const originRule = ({
  baseUrl,
  corsOrigins,
  host,
  port
}: Pick<Config, "baseUrl" | "corsOrigins" | "host" | "port">): ((origin: string) => boolean) => {
  const own = baseUrl ?? `http://${host.includes(":") ? `[${host}]` : host}:${port}`
  const named = new Set([
    ...corsOrigins,
    new URL(own).origin,
    ...loopbackNames.map((name) => new URL(`http://${name}:${port}`).origin)
  ])
  if (port !== 0) return (origin) => origin === "" || named.has(origin)
  // The system chose a port after the settings were read: each port of these names counts.
  const loopback = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]):\d{1,5}$/
  return (origin) => origin === "" || named.has(origin) || loopback.test(origin)
}
