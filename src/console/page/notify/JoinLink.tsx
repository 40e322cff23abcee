import type { Project } from "#schemas/notify/Project.ts"
import { Code } from "../parts/Code.tsx"
import { Dialog } from "../parts/Dialog.tsx"
import { Toast } from "../parts/Toast.tsx"
import { useChange } from "../parts/UseChange.ts"
import { QrCode } from "./QrCode.tsx"

interface JoinLinkProps {
  readonly project: Project
  /** of the project */
  readonly path: string
  onChanged(): void
}

/** The link by which people subscribe, also for the camera of a phone. */
export const JoinLink = ({ onChanged, path, project: { joinUrl } }: JoinLinkProps) => {
  const change = useChange()
  const open = (joining: "link" | "closed"): void =>
    void change.run(async (ask) => {
      await ask(path, { method: "PATCH", json: { joining } })
      onChanged()
    })
  return (
    <section class="joining" aria-labelledby="joining-title">
      <h2 id="joining-title">Join link</h2>
      {joinUrl === null ? (
        <>
          <p>Joining is closed: the link opens nothing.</p>
          <p>
            <button type="button" disabled={change.isBusy} onClick={() => open("link")}>
              Open it
            </button>
          </p>
        </>
      ) : (
        <div class="join-link">
          <QrCode label="QR code of the join link" text={joinUrl} />
          <div>
            <p class="hint">
              People who have it can subscribe, with a browser of theirs, a team’s chat or a webhook.
            </p>
            <Code of="join link" text={joinUrl} />
            <div class="buttons">
              <a class="open-link" href={joinUrl} target="_blank" rel="noreferrer">
                Open it
              </a>
              <button type="button" class="plain" disabled={change.isBusy} onClick={() => open("closed")}>
                Close joining
              </button>
            </div>
            <Dialog
              action="Make a new link"
              question="The present link works nowhere any more. Subscribers stay."
              yes="Replace it"
              run={async (ask) => {
                await ask(`${path}/join-link`, { method: "POST" })
                onChanged()
              }}
            />
          </div>
        </div>
      )}
      <Toast>{change.problem}</Toast>
    </section>
  )
}
