import type { ServerAddress } from "../connection/ServerRest.ts"
import type { AgentConfig } from "./ConfigFile.ts"
import { ConfigurationProblem } from "./UsageProblem.ts"

const loginHint = "Sign in once with `signalbox-agent login`, or set SIGNALBOX_URL and SIGNALBOX_KEY."

/** `http(s)://host[:port]`, or undefined where it is something else. */
export const originOf = (text: string): string | undefined => {
  const url = URL.parse(text.trim())
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    return undefined
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`
}

/** A key goes out in the clear there, and can be read on the way. */
export const isExposed = (url: string): boolean => {
  const { hostname, protocol } = new URL(url)
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
  return protocol === "http:" && !isLoopback
}

/**
 * The server and its key: `--url` before SIGNALBOX_URL before the file, SIGNALBOX_KEY before the file. The file's key
 * is only ever sent to the file's server. Throws `ConfigurationProblem`.
 */
export const findServer = (
  given: { readonly url?: string },
  environment: Readonly<Record<string, string | undefined>>,
  config: AgentConfig | undefined
): ServerAddress => {
  const wanted = given.url ?? environment.SIGNALBOX_URL ?? config?.url
  if (wanted === undefined) throw new ConfigurationProblem(`No server is known. ${loginHint}`)
  const url = originOf(wanted)
  if (url === undefined)
    throw new ConfigurationProblem(`${wanted} is not the address of a server (https://…)`)
  if (environment.SIGNALBOX_KEY !== undefined && environment.SIGNALBOX_KEY !== "") {
    return { url, key: environment.SIGNALBOX_KEY }
  }
  if (config === undefined) throw new ConfigurationProblem(`No key is known. ${loginHint}`)
  if (originOf(config.url) !== url) {
    throw new ConfigurationProblem(
      `The key in the configuration is for ${config.url}, and is not sent to ${url}. Set SIGNALBOX_KEY for it.`
    )
  }
  return { url, key: config.key }
}
