import type { CreatedProjectKey } from "#schemas/notify/ProjectKey.ts"
import type { Sent } from "#schemas/notify/Message.ts"
import type { Project } from "#schemas/notify/Project.ts"
import { useState } from "preact/hooks"
import { useAnswer } from "../api/UseAnswer.ts"
import { formatCounted } from "../figures/Format.ts"
import { Asking } from "../parts/Asking.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Heading } from "../parts/Heading.tsx"
import { Toast } from "../parts/Toast.tsx"
import { useChange } from "../parts/UseChange.ts"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import { JoinLink } from "./JoinLink.tsx"
import { MessageList } from "./MessageList.tsx"
import { Snippets } from "./Snippets.tsx"
import { AddSubscriber } from "./AddSubscriber.tsx"
import { Subscribers } from "./Subscribers.tsx"
import { notifyView } from "./Words.ts"

const refreshMillis = 5_000

const isUnknown = ({ status }: { readonly status: number }): boolean => status === 404

/** One project: its link, its subscribers, how to send to it, and its messages. */
export const ProjectView = ({ id }: { readonly id: string }) => {
  const { go } = useNavigation()
  const [since, setSince] = useState(0)
  const [key, setKey] = useState<CreatedProjectKey>()
  const path = `/api/v1/projects/${encodeURIComponent(id)}`
  const { data: project, refused } = useAnswer<Project>(path, refreshMillis, {
    since,
    isExpected: isUnknown
  })
  const onChanged = (): void => setSince((before) => before + 1)
  if (project === undefined)
    return refused !== undefined && isUnknown(refused) ? (
      <UnknownProject />
    ) : (
      <Asking what="the project" isRefused={refused !== undefined} />
    )
  return (
    <>
      <p class="way-back">
        <ViewLink to={notifyView}>All projects</ViewLink>
      </p>
      <div class="project-head">
        <div>
          <Heading tab="Notify">{project.name}</Heading>
          <p class="hint">
            {project.slug} · {formatCounted(project.subscribers, "subscriber")}
          </p>
        </div>
        <Test project={project} onSent={onChanged} />
      </div>
      {project.description !== "" && <p class="project-about">{project.description}</p>}
      <JoinLink project={project} path={path} onChanged={onChanged} />
      <Subscribers path={path} since={since} onChanged={onChanged} />
      <AddSubscriber path={path} onAdded={onChanged} />
      <MessageList title="Messages" path={`/api/v1/messages?limit=20&project=${project.id}`} since={since} />
      <Snippets project={project} made={key} onMade={setKey} />
      <Dialog
        action="Delete the project"
        question={`${project.name} takes no message any more: what waits is not sent, and its messages and their pages are gone.`}
        yes="Delete it"
        run={async (ask) => {
          await ask(path, { method: "DELETE" })
          go(notifyView)
        }}
      />
    </>
  )
}

const UnknownProject = () => (
  <section class="narrow">
    <h1>No such project</h1>
    <p>
      <ViewLink to={notifyView}>All projects</ViewLink>
    </p>
  </section>
)

interface TestProps {
  readonly project: Project
  onSent(): void
}

const Test = ({ onSent, project }: TestProps) => {
  const change = useChange()
  const [recipients, setRecipients] = useState<number>()
  const send = (): void => {
    setRecipients(undefined)
    void change.run(async (ask) => {
      const sent = await ask<Sent>(`/api/v1/projects/${project.id}/test`, { method: "POST" })
      setRecipients(sent.recipients)
      onSent()
    })
  }
  return (
    <div class="project-test">
      <button type="button" class="primary" disabled={change.isBusy} onClick={send}>
        Send a test
      </button>
      <Toast isGood>
        {recipients === undefined ? "" : `Sent to ${formatCounted(recipients, "subscriber")}.`}
      </Toast>
      <Toast>{change.problem}</Toast>
    </div>
  )
}
