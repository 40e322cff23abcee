import type { Question } from "../boundary/Approvals.ts"
import { requireUnsealed } from "../boundary/ProtectedPaths.ts"
import { selfRunningAt } from "../boundary/SelfRunning.ts"
import { statOf, type Place, type Workspace } from "../boundary/Walk.ts"
import { whereabouts } from "../boundary/Whereabouts.ts"
import { shown } from "../boundary/WorkspacePath.ts"
import { denied } from "./ToolFailure.ts"

/**
 * Questions before a file is written:
 * - `hard_link`: it has other names; those keep the old contents
 * - `self_running`: the program `by` runs it, or what it says, by itself
 */
export type WriteQuestion =
  | { readonly kind: "hard_link"; readonly path: string; readonly names: number }
  | { readonly kind: "self_running"; readonly path: string; readonly by: string }

export type AskWrite = (question: WriteQuestion) => Promise<boolean>

export const questionOfWrite = (callId: string, write: WriteQuestion): Question => {
  const { kind, path } = write
  const ask = { callId, kinds: [kind] }
  return write.kind === "hard_link"
    ? {
        key: JSON.stringify([kind, path]),
        subject: { type: "write", path },
        ask: {
          ...ask,
          title: `Replace ${path}, which has ${write.names} names`,
          detail: `${path} is one of ${write.names} names (hard links) of one file. This name gets the new contents; the others keep the old ones.`,
          scope: `Replacing ${path} in this workspace`
        }
      }
    : {
        key: JSON.stringify([kind, path]),
        ask: {
          ...ask,
          title: `Write ${path}, which runs by itself`,
          detail: `${path} is taken up without a further question by ${write.by}. Read what would be written before you allow it.`,
          scope: `Writing ${path} in this workspace`
        }
      }
}

/**
 * Asks before anything is made where the path leads to what runs by itself. Answers with the path that was allowed; undefined
 * where nothing had to be asked.
 */
export const askForSelfRunning = async (
  workspace: Workspace,
  path: string,
  ask: AskWrite
): Promise<string | undefined> => {
  const parts = whereabouts(workspace, path)?.parts
  const found = parts === undefined ? undefined : selfRunningAt(workspace.protection, parts)
  if (parts === undefined || found === undefined) return undefined
  requireUnsealed(workspace.protection, parts)
  const name = shown(parts)
  if (!(await ask({ kind: "self_running", path: name, by: found.by })))
    throw denied(`${name} is taken up by itself by ${found.by}; the user did not allow writing it`)
  return name
}

/** Links on the way may have been exchanged since: only the very path that was asked for is written. */
export const requireAsked = (
  { protection }: Workspace,
  { directory, name }: Place,
  allowed: string | undefined
): void => {
  const parts = [...directory.parts, name]
  if (selfRunningAt(protection, parts) === undefined || shown(parts) === allowed) return
  throw denied(`${shown(parts)} runs by itself, and was not what the user was asked for`)
}

/** Asks first where the file has other names. */
export const askForHardLink = async (place: Place, ask: AskWrite): Promise<void> => {
  const stats = statOf(place)
  if (stats === undefined || !stats.isFile() || stats.nlink < 2) return
  const path = shown([...place.directory.parts, place.name])
  if (!(await ask({ kind: "hard_link", path, names: stats.nlink })))
    throw denied(
      `${path} has ${stats.nlink} names, some perhaps outside of the workspace; it was not replaced`
    )
}
