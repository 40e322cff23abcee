import { Argument, Flag } from "effect/cli"
import { id, noun, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"
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
    name,
    (client, payload) => client.projects.createProject({ payload }),
    ({ joinUrl, slug }) => `Project ${slug}. People subscribe at ${joinUrl ?? "no link"}`
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
      )
    },
    (client, { name, projects }) =>
      client.projectKeys.createProjectKey({
        payload: { name, projects: projects === "all" ? projects : projects.split(",") }
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

export const commands = [projects, keys, sandboxChannels] as const
