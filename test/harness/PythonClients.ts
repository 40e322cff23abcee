import { existsSync } from "node:fs"
import { join } from "node:path"
import { requirement } from "./Requirement.ts"
import { root } from "./ServerProcess.ts"

/** The environment of deploy/setup/python.mjs. */
export const pythonHome = join(root, ".runtime/python")

export const pythonClients = requirement("Python clients in .runtime/python", () =>
  existsSync(join(pythonHome, "installed"))
    ? undefined
    : "npm test installs them where it can; see what it says"
)
