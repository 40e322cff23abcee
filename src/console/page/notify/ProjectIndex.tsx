import type { Project } from "#schemas/notify/Project.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatCounted } from "../figures/Format.ts"
import { Asking } from "../parts/Asking.tsx"
import { Heading } from "../parts/Heading.tsx"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { DeadLetters } from "./DeadLetters.tsx"
import { KeysPanel } from "./KeysPanel.tsx"
import { MessageList } from "./MessageList.tsx"
import { NewProject } from "./NewProject.tsx"
import { SandboxNote } from "./SandboxNote.tsx"
import { projectView } from "./Words.ts"

const refreshMillis = 10_000

/** The user's projects, keys and latest messages; without any project, how to make the first. */
export const ProjectIndex = () => {
  const { go } = useNavigation()
  const { data, refused } = useAnswer<{ readonly projects: ReadonlyArray<Project> }>(
    "/api/v1/projects",
    refreshMillis
  )
  const onMade = ({ id }: Project): void => go(projectView(id))
  return (
    <>
      <Heading tab="Notify">Notifications</Heading>
      {data === undefined && <Asking what="your projects" isRefused={refused !== undefined} />}
      {data?.projects.length === 0 && (
        <section class="narrow">
          <p>
            A project is what people subscribe to and programs send to. Make one, open its link in a browser,
            and send it a message.
          </p>
          <NewProject onMade={onMade} />
        </section>
      )}
      {data !== undefined && data.projects.length > 0 && (
        <>
          <section aria-labelledby="projects-title">
            <h2 id="projects-title">Projects</h2>
            <ul class="links">
              {data.projects.map((project) => (
                <li key={project.id}>
                  <ViewLink to={projectView(project.id)} class="project-row">
                    <strong>{project.name}</strong>
                    <span class="hint">{project.slug}</span>
                    <span class="hint project-count">{formatCounted(project.subscribers, "subscriber")}</span>
                  </ViewLink>
                </li>
              ))}
            </ul>
            <details class="new-project">
              <summary>New project</summary>
              <NewProject onMade={onMade} />
            </details>
          </section>
          <MessageList title="Messages" path="/api/v1/messages?limit=20" showsProject />
          <DeadLetters />
          <KeysPanel projects={data.projects} />
        </>
      )}
      <SandboxNote />
    </>
  )
}
