import { basename } from "node:path"
import { openWorkspace, realPath } from "../boundary/OpenWorkspace.ts"
import { readConfig } from "../config/ConfigFile.ts"
import { configDirectory, stateDirectory } from "../config/Directories.ts"
import { findServer } from "../config/FindServer.ts"
import { UsageProblem } from "../config/UsageProblem.ts"
import { rootOf, type ServerAddress } from "../connection/ServerRest.ts"
import { JournalDirectory } from "../journal/JournalDirectory.ts"
import { imageReader, type ImageReader } from "../prompt/ReadImage.ts"
import { ToolRunner } from "../tools/ToolRunner.ts"

/** The parts that all modes work with. */
export interface Workplace {
  readonly server: ServerAddress
  readonly workspace: { readonly root: string; readonly name: string }
  readonly runner: ToolRunner
  readonly journals: JournalDirectory
  readonly readImage: ImageReader
  readonly stateDir: string
}

interface WorkplaceOptions {
  readonly url?: string
  readonly workspace: string
  readonly network?: "ask" | "off"
  readonly sandbox?: "auto" | "off"
}

/**
 * Opens the workspace and finds the server. Settings come from flags, the environment and the user's own file; nothing in
 * the workspace is one. Throws `UsageProblem`.
 */
export const openWorkplace = async (
  options: WorkplaceOptions,
  environment: Readonly<Record<string, string | undefined>>
): Promise<Workplace> => {
  const configDir = configDirectory(environment)
  const stateDir = stateDirectory(environment)
  const config = readConfig(configDir)
  const server = findServer(options.url === undefined ? {} : { url: options.url }, environment, config)
  try {
    const root = realPath(options.workspace)
    const runner = await ToolRunner.open({
      root,
      configDir,
      stateDir,
      sandbox: options.sandbox ?? config?.sandbox ?? "auto",
      network: options.network ?? config?.network ?? "ask"
    })
    const journals = new JournalDirectory(stateDir)
    const readImage = imageReader(openWorkspace(root, { closed: [configDir, stateDir] }))
    return {
      server,
      workspace: { root, name: basename(root) || root },
      runner,
      journals,
      readImage,
      stateDir
    }
  } catch (error) {
    throw new UsageProblem(rootOf(error))
  }
}
