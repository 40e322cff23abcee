import { opendirSync, type Dirent } from "node:fs"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { EntriesResult, ListParams } from "#schemas/agents/ToolCall.ts"
import type { HeldDirectory } from "../boundary/Jail.ts"
import { openDirectory, type Workspace } from "../boundary/Walk.ts"
import { partsOf } from "../boundary/WorkspacePath.ts"

/** No directory is read further than this. */
const maxDirectoryEntries = 100_000

/** The names of a directory that is held, in the order of their bytes; `isWhole`: there were no more. */
export const entriesOf = (
  directory: HeldDirectory
): { readonly entries: ReadonlyArray<Dirent>; readonly isWhole: boolean } => {
  const stream = opendirSync(`${directory.self}/`)
  try {
    const entries: Array<Dirent> = []
    for (let entry = stream.readSync(); entry !== null; entry = stream.readSync()) {
      if (entries.length === maxDirectoryEntries) return { entries, isWhole: false }
      entries.push(entry)
    }
    directory.verify()
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    return { entries, isWhole: true }
  } finally {
    stream.closeSync()
  }
}

/** Entries within the caps of a text that goes to the model. */
export const capped = (
  entries: ReadonlyArray<string>,
  limit: number
): { readonly kept: ReadonlyArray<string>; readonly truncated: boolean } => {
  let bytes = 0
  let count = 0
  while (count < entries.length && count < limit) {
    bytes += Buffer.byteLength(entries[count] ?? "") + 1
    if (bytes > agentLimits.textBytes) break
    count++
  }
  return { kept: entries.slice(0, count), truncated: count < entries.length }
}

/** fs.list. */
export const listDirectory = (
  workspace: Workspace,
  { path = ".", limit = agentLimits.listEntries }: typeof ListParams.Type
): typeof EntriesResult.Type => {
  const directory = openDirectory(workspace, partsOf(workspace.jail.root, path))
  try {
    const { entries, isWhole } = entriesOf(directory)
    const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
    const { kept, truncated } = capped(names, limit)
    return { entries: kept, truncated: truncated || !isWhole }
  } finally {
    directory.close()
  }
}
