import type { Project } from "#schemas/notify/Project.ts"
import type { CreatedProjectKey } from "#schemas/notify/ProjectKey.ts"
import { Code } from "../parts/Code.tsx"
import { Toast } from "../parts/Toast.tsx"
import { useChange } from "../parts/UseChange.ts"

interface SnippetsProps {
  readonly project: Project
  /** a key that was made just now */
  readonly made: CreatedProjectKey | undefined
  onMade(key: CreatedProjectKey): void
}

/** Ways for programs to send to the project, to be pasted. */
export const Snippets = ({ made, onMade, project }: SnippetsProps) => {
  const change = useChange()
  const key = made?.key ?? "PROJECT_KEY"
  const make = (): void =>
    void change.run(async (ask) => {
      const json = { name: project.name, projects: [project.id] }
      onMade(await ask("/api/v1/project-keys", { method: "POST", json }))
    })
  return (
    <section class="site-setup" aria-labelledby="sending-title">
      <h2 id="sending-title">Send from a program</h2>
      {made === undefined ? (
        <p class="hint">
          A project key goes in the place of <code>PROJECT_KEY</code>.{" "}
          <button type="button" class="plain" onClick={make} disabled={change.isBusy}>
            Make one for this project
          </button>
        </p>
      ) : (
        <p class="secret" role="status">
          <strong>The new key is in the commands below, and is shown only now.</strong> Keep it: it sends to
          this project and reads nothing of others.
        </p>
      )}
      <Toast>{change.problem}</Toast>
      <section>
        <h3>A message</h3>
        <Code of="command" text={sendCommand(key, project.slug)} />
      </section>
      <section>
        <h3>With files</h3>
        <Code of="command with a file" text={formCommand(key, project.slug)} />
      </section>
      <section>
        <h3>From an agent, by the Model Context Protocol</h3>
        <Code of="settings of an agent" text={mcpSettings(key)} />
      </section>
    </section>
  )
}

const sendCommand = (key: string, slug: string): string =>
  [
    `curl ${location.origin}/api/v1/messages`,
    `  -H 'Authorization: Bearer ${key}'`,
    `  -H 'Content-Type: application/json'`,
    `  -d '${JSON.stringify({ project: slug, app: "backup", message: "The backup is done" })}'`
  ].join(" \\\n")

const formCommand = (key: string, slug: string): string =>
  [
    `curl ${location.origin}/api/v1/messages`,
    `  -H 'Authorization: Bearer ${key}'`,
    `  -F project=${slug} -F app=build -F message='The build failed' -F log=@build.log`
  ].join(" \\\n")

const mcpSettings = (key: string): string =>
  JSON.stringify(
    {
      mcpServers: {
        signalbox: {
          type: "http",
          url: `${location.origin}/mcp`,
          headers: { Authorization: `Bearer ${key}` }
        }
      }
    },
    null,
    2
  )
