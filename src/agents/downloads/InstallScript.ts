import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { AgentDownload } from "../AgentDownloads.ts"

const template = readFileSync(join(import.meta.dirname, "InstallScript.sh"), "utf8")

/** Any text as one word of a POSIX shell. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const choice = ({ arch, filename, sha256 }: AgentDownload): string =>
  `    ${arch}) filename=${shellQuoted(filename) + ` sha256=${sha256}`} ;;`

/**
 * The program that `curl … | sh` runs: installs the client of the server at `url` (without a trailing slash). Names and
 * hashes of the builds are in it, so that a cache in between cannot deliver other builds than this server's.
 */
export const installScript = (url: string, downloads: ReadonlyArray<AgentDownload>): string =>
  template
    .replace("@SERVER_COMMENT@", () => url.replaceAll(/[^\x21-\x7e]/g, ""))
    .replace("@SERVER@", () => shellQuoted(url))
    .replace("    # @CHOICES@", () => downloads.map(choice).join("\n"))

/** The command that fetches the client. Source: contract/agents#downloads. */
export const installCommands = (
  url: string,
  downloads: ReadonlyArray<AgentDownload>
): { readonly source: string; readonly binary: string } => ({
  source: "npm install && npm link # in a clone of this server, with Node 22.19 or later",
  binary: downloads.length === 0 ? "" : `curl -fsSL ${shellQuoted(`${url}/agent/install.sh`)} | sh`
})
