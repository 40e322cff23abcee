import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { build } from "vite"

/**
 * The text of one ECMAScript module for Node 22.19 or later: the client and all its imports except Node's own modules.
 */
export const bundleClient = async (root, entry) => {
  const home = mkdtempSync(join(tmpdir(), "signalbox-agent-"))
  try {
    await build({
      root,
      configFile: false,
      publicDir: false,
      logLevel: "warn",
      // Optional parts of `ws` would be looked for beside the program, where they do not exist.
      define: { "process.env.WS_NO_BUFFER_UTIL": "true", "process.env.WS_NO_UTF_8_VALIDATE": "true" },
      ssr: { target: "node", noExternal: true },
      build: {
        ssr: entry,
        outDir: home,
        emptyOutDir: true,
        target: "node22",
        minify: false,
        rolldownOptions: {
          output: { entryFileNames: "signalbox-agent.mjs", format: "esm", codeSplitting: false }
        }
      }
    })
    const text = readFileSync(join(home, "signalbox-agent.mjs"), "utf8")
    return `#!/usr/bin/env node\n${text.replace(/^#!.*\n/, "")}`
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
