import { Argument, type Command, Flag } from "effect/cli"
import { id, noun, optional, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"
import { messageCommands } from "./MessageCommands.ts"
import { notify } from "./NotifyCommand.ts"
import { sandboxChannels } from "./SandboxChannelsCommand.ts"

const project = id("Id or slug of the project")
const key = id("Id of the key (pky_…)")
const name = { name: Argument.String("name").pipe(Argument.withDescription("Name to show")) }

const projects = noun("projects", "List, make and delete projects of notifications", [
  verb(
    "list",
    "List one's own projects",
    {},
    (client) => client.projects.listProjects(),
    (answer) =>
      tableOf(
        ["id", "slug", "name", "subscribers", "joinUrl"],
        answer.projects.map((one) => ({ subscribers: "", joinUrl: "", ...one }))
      )
  ),
  verb(
    "create",
    "Make a project",
    {
      ...name,
      slug: optional(Flag.String("slug"), "Its name in requests; default: made from the name"),
      description: optional(Flag.String("description"), "Told to those who join")
    },
    (client, payload) => client.projects.createProject({ payload }),
    ({ joinUrl, slug }) => `Project ${slug}. People subscribe at ${joinUrl ?? "no link"}`
  ),
  verb(
    "test",
    "Send a test message to a project's subscribers",
    project,
    (client, params) => client.messages.sendTestMessage({ params }),
    ({ recipients }) => `Sent to ${recipients} ${recipients === 1 ? "subscriber" : "subscribers"}`
  ),
  verb(
    "renew-link",
    "Replace a project's join link; the old one works nowhere any more",
    project,
    (client, params) => client.projects.renewJoinLink({ params }),
    ({ joinUrl }) => joinUrl ?? "Joining is closed"
  ),
  verb(
    "delete",
    "Delete a project",
    project,
    (client, params) => client.projects.deleteProject({ params }),
    () => "Deleted"
  )
])

const keys = noun("project-keys", "List, make and revoke keys that send notifications", [
  verb(
    "list",
    "List one's own project keys",
    {},
    (client) => client.projectKeys.listProjectKeys(),
    (answer) =>
      tableOf(
        ["id", "name", "prefix", "projects", "expiresAt"],
        answer.keys.map((one) => ({ ...one, projects: one.projects === "all" ? "all" : one.projects.length }))
      )
  ),
  verb(
    "create",
    "Make a project key",
    {
      ...name,
      projects: Flag.String("projects").pipe(
        Flag.withDescription("Ids or slugs, separated by commas; default: all"),
        Flag.withDefault("all")
      ),
      expiresAt: optional(Flag.String("expires"), "End, such as 2027-01-01T00:00:00Z"),
      rateLimitPerMinute: optional(Flag.Int("rate"), "Sends in a minute, in place of 120")
    },
    (client, { projects, ...rest }) =>
      client.projectKeys.createProjectKey({
        payload: { ...rest, projects: projects === "all" ? projects : projects.split(",") }
      }),
    ({ key }) => `Key, shown now and never again: ${key}`
  ),
  verb(
    "revoke",
    "Revoke a project key",
    key,
    (client, params) => client.projectKeys.revokeProjectKey({ params }),
    () => "Revoked"
  )
])

/** The room's commands of `signalbox`. */
export const commands: ReadonlyArray<Command.Command.Any> = [
  projects,
  keys,
  ...messageCommands,
  notify,
  sandboxChannels
]
