import { join, relative } from "node:path"
import type { ApprovalKind } from "../boundary/Approval.ts"
import { gitLayoutOf, type GitLayout } from "../boundary/GitLayout.ts"
import type { Jail } from "../boundary/Jail.ts"
import { isWithin } from "../boundary/OpenWorkspace.ts"
import { linkEnd } from "../boundary/SelfRunning.ts"
import { surveyBounds, type Survey, type Surveyed } from "../boundary/Survey.ts"
import { askVariable } from "./MissedNeeds.ts"
import type { GitAccess, MountPlan } from "./MountPlan.ts"
import { rebaseCommands, removeRebaseCommands, type RebaseCommands } from "./RebaseTodo.ts"
import { sweep } from "./Sweep.ts"
import { statfsSync, existsSync, rmSync } from "node:fs"

/**
 * A file `commondir` in a repository says where its hooks and configuration are, so it would undo that these are read only.
 * It is the one such file that cannot be held while a commit is made: merely being there, empty, it breaks git. So whatever
 * a command has made of that name is taken away, and named. Source: gitrepository-layout(5).
 */
const removePlantedLinks = ({ main, nested }: GitLayout): ReadonlyArray<string> =>
  [main, ...nested]
    .filter((repository) => repository !== undefined)
    .filter(({ gitDir, commonDir }) => gitDir === commonDir)
    .map(({ gitDir }) => join(gitDir, "commondir"))
    .filter((path) => existsSync(path))
    .map((path) => {
      rmSync(path, { recursive: true, force: true })
      return path
    })

/** ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS, F2FS. Source: statfs(2). */
const local = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010])

/** Whether times of change there are of this machine's clock, and renaming sets them. Over a network they may not. */
const hasLocalTimes = (root: string): boolean => local.has(statfsSync(root).type)

/** Steps in which the times of a file system move, and more. */
const stepMillis = 20

/** The moment at which a command began. No program can set a time of change: older files are not the command's. */
class CommandStart {
  readonly #isLocal: boolean
  readonly #wall = Date.now()
  readonly #steady = performance.now()

  constructor(isLocal: boolean) {
    this.#isLocal = isLocal
  }

  /** Milliseconds since 1970, before which nothing of the command's was changed; 0 where that cannot be known. */
  get since(): number {
    const drift = Date.now() - this.#wall - (performance.now() - this.#steady)
    return this.#isLocal && Math.abs(drift) < stepMillis / 2 ? this.#wall - stepMillis : 0
  }
}

/** A workspace before a command. */
export interface Surroundings {
  readonly layout: GitLayout
  readonly surveyed: Surveyed
}

/** Entries of the list, links followed as far as they stay in the workspace, and paths that configurations name. */
export const selfRunningIn = (
  root: string,
  { surveyed: { selfRunning } }: Surroundings,
  named: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const listed = [...selfRunning].flatMap(([path, { link }]) => {
    const real = link === undefined ? path : linkEnd(path)
    return real !== undefined && real !== root && isWithin(root, real) ? [real] : []
  })
  return [...new Set([...listed, ...named])]
}

/** As many paths that cannot be held are named in a question. */
const maxNamed = 20

/** Tells which part of a workspace cannot be held for a command, or not be seen after it; "" where all can. */
export const unheld = ({ loose }: MountPlan, { surveyed: { isComplete } }: Surroundings): string => {
  const rest = loose.length - maxNamed
  const why = rest > 0 ? "links are in the way, or there are too many" : "links are in the way"
  const named = [...loose.slice(0, maxNamed), ...(rest > 0 ? [`and ${rest} more`] : [])].join(", ")
  const held = loose.length === 0 ? [] : [`The sandbox cannot keep this as it is, ${why}: ${named}.`]
  const seen = isComplete
    ? []
    : [
        `The workspace is too large to be looked through (${surveyBounds.directories} directories): what this command leaves deep in it for git or an editor to run is not found.`
      ]
  return [...held, ...seen].join(" ")
}

/** Whether a command ran into a file that is held because it runs by itself. */
export const lacksSelfRunning = (root: string, output: string, { selfRunning }: MountPlan): boolean =>
  /read-only file system|resource busy|EROFS|EBUSY/i.test(output) &&
  selfRunning.some((path) => output.includes(relative(root, path).split("/")[0] ?? path))

/** Behind the output of such a command: tells the model how to ask. */
export const missedSelfRunning = `\n[This command ran without self_running, which the user has to allow. If it failed for that, start it with ${askVariable}=self_running to ask the user.]\n`

/** A command that has begun. */
export interface Begun {
  readonly surroundings: Surroundings
  readonly rebase: RebaseCommands
  readonly beginning: CommandStart
}

/** The rights of a command, and whether others run. */
export interface Given {
  readonly access: GitAccess
  readonly kinds: ReadonlyArray<ApprovalKind>
  readonly isHeld: boolean
  readonly isAlone: boolean
}

/** A look so shortly ago is not repeated. Files that the user makes in that time are told by their age. */
const freshMillis = 2_000

/** Looks at a workspace before a command and after it, and takes back what would run by itself later. */
export class WorkspaceCheck {
  readonly #jail: Jail
  readonly #survey: Survey
  readonly #isLocal: boolean
  /** the last command's remains, and the time of the look */
  #left: { readonly surveyed: Surveyed; readonly at: number } | undefined

  constructor(jail: Jail, survey: Survey) {
    this.#jail = jail
    this.#survey = survey
    this.#isLocal = hasLocalTimes(jail.root)
  }

  async survey(): Promise<Surroundings> {
    const left = this.#left
    const isFresh = left !== undefined && performance.now() - left.at < freshMillis
    const surveyed = isFresh ? left.surveyed : await this.#survey.look()
    return { surveyed, layout: gitLayoutOf(this.#jail.root, surveyed.git) }
  }

  begin(surroundings: Surroundings): Begun {
    const rebase = rebaseCommands(surroundings.layout)
    return { surroundings, rebase, beginning: new CommandStart(this.#isLocal) }
  }

  /** Answers with what to tell the user and the model, a line each. */
  async undo(
    { surroundings: { layout, surveyed }, rebase, beginning }: Begun,
    { access, kinds, isHeld, isAlone }: Given
  ): Promise<ReadonlyArray<string>> {
    const inGit =
      access === "commit"
        ? [
            ...removePlantedLinks(layout).map(
              (path) => `${path} was removed: it would move the repository's hooks`
            ),
            ...removeRebaseCommands(layout, rebase)
          ]
        : []
    // While another one runs there are places for its mounts. The last one's sweep is for all.
    if (!isAlone) return inGit
    const after = await this.#survey.look()
    const told = sweep(this.#jail, surveyed, after, {
      repository: access === "all",
      selfRunning: kinds.includes("self_running"),
      unsandboxed: !isHeld,
      since: beginning.since
    })
    // Without a repository at the root a command's mounts have changed it.
    const { root } = this.#jail
    const isTimed = this.#isLocal && layout.main?.entry === join(root, ".git")
    this.#left = told.length === 0 && isTimed ? { surveyed: after, at: performance.now() } : undefined
    return [...inGit, ...told]
  }
}
