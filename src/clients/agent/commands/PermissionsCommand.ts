import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { approvalFile } from "../boundary/ApprovalFile.ts"
import { keptPermissions, revokeKept } from "../boundary/Approvals.ts"
import { realPath } from "../boundary/OpenWorkspace.ts"
import { permissionLines } from "../boundary/PermissionLines.ts"
import { printable } from "../boundary/Printable.ts"
import { configDirectory } from "../config/Directories.ts"
import { UsageProblem } from "../config/UsageProblem.ts"
import { rootOf } from "../connection/ServerRest.ts"

const workspace = Flag.String("workspace").pipe(
  Flag.withAlias("C"),
  Flag.withMetavar("DIRECTORY"),
  Flag.withDescription("Only those of this directory; default: all"),
  Flag.optional
)
const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print JSON for other programs"),
  Flag.withDefault(false)
)

const rootIn = (given: Option.Option<string>): string | undefined =>
  Option.getOrUndefined(Option.map(given, realPath))

const said = (text: string, isJson: boolean, value: unknown): Effect.Effect<void> =>
  Console.log(isJson ? JSON.stringify(value, null, 2) : printable(text))

/** Fails with `UsageProblem` where the file is damaged, once what it has was printed. */
const listing = Effect.fnUntraced(function* (flags: {
  readonly workspace: Option.Option<string>
  readonly json: boolean
}) {
  const kept = yield* Effect.try({
    try: () => keptPermissions(configDirectory(process.env), rootIn(flags.workspace)),
    catch: (error) => new UsageProblem(rootOf(error))
  })
  yield* said(permissionLines(kept, true), flags.json, kept)
  if (kept.isDamaged) return yield* Effect.fail(new UsageProblem(kept.problem ?? ""))
})

const list = Command.make("list", { workspace, json }, listing).pipe(
  Command.withDescription("What is allowed without being asked, by workspace")
)

interface RevokeFlags {
  readonly id: Option.Option<string>
  readonly all: boolean
  readonly workspace: Option.Option<string>
  readonly json: boolean
}

const revoked = ({ all, id, workspace: given }: RevokeFlags): number => {
  if (all === Option.isSome(id))
    throw new UsageProblem("Name one: permissions revoke ID, or permissions revoke --all")
  const root = rootIn(given)
  const wanted = Option.getOrUndefined(id)
  const directory = configDirectory(process.env)
  const count = revokeKept(
    directory,
    (granted) => (root === undefined || granted.workspace === root) && (all || granted.id === wanted)
  )
  if (count === 0 && !all)
    throw new UsageProblem(`${approvalFile(directory)} has no permission ${wanted ?? ""}`)
  return count
}

const revoke = Command.make(
  "revoke",
  {
    id: Argument.String("id").pipe(Argument.withDescription("As the list has it"), Argument.optional),
    all: Flag.Boolean("all").pipe(
      Flag.withDescription("All of them, of one workspace with -C"),
      Flag.withDefault(false)
    ),
    workspace,
    json
  },
  Effect.fnUntraced(function* (flags) {
    const count = yield* Effect.try({
      try: () => revoked(flags),
      catch: (error) => (error instanceof UsageProblem ? error : new UsageProblem(rootOf(error)))
    })
    yield* said(`${count} taken back; clients that run ask for it again`, flags.json, { revoked: count })
  })
).pipe(Command.withDescription("Take back one, or all; clients that run ask again at once"))

export const permissions = Command.make("permissions", { workspace, json }, listing).pipe(
  Command.withDescription(
    "List and revoke what you allowed for always and by rules. What was allowed for a session is known to its client alone: /permissions there"
  ),
  Command.withSubcommands([list, revoke])
)
