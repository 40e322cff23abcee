import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { Form } from "../../parts/Form.tsx"
import { Modal } from "../../parts/Modal.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { Choices } from "../share/Choices.tsx"
import { parentOf } from "../Places.ts"
import type { Directory, Entry } from "../Types.ts"
import { type DeviceList, path as devicesPath } from "./Device.ts"

/** A file or directory, as flags name it. */
interface Resource {
  readonly resourceType: "file" | "directory"
  readonly resourceId: string
}

interface Flag extends Resource {
  readonly scope: "all" | "selected"
  readonly deviceIds: ReadonlyArray<string>
}

interface Flags {
  readonly subscriptions: ReadonlyArray<Flag>
  readonly excluded: ReadonlyArray<Resource>
}

interface FlagDialogProps {
  readonly entry: Entry
  onClose(): void
}

const path = "/api/sync/subscriptions"

type Choice = "all" | "selected" | "none"

/** Chooses the devices that get a file, or a directory with all that is in it. */
export const FlagDialog = ({ entry, onClose }: FlagDialogProps) => {
  const { data: flags } = useAnswer<Flags>(path)
  const { data: list } = useAnswer<DeviceList>(devicesPath)
  const above = parentOf(entry.of.path)
  const { data: chain } = useAnswer<{ readonly directories: ReadonlyArray<Directory> }>(
    above === "" ? undefined : `/api/directories?path=${encodeURIComponent(above)}`
  )
  const directories = above === "" ? [] : chain?.directories
  return (
    <Modal title={`Devices of ${entry.of.name}`} onClose={onClose}>
      {flags === undefined || list === undefined || directories === undefined ? (
        <p class="hint">Asking for its devices …</p>
      ) : (
        <Flagging {...{ entry, flags, onClose }} above={directories} devices={list.devices} />
      )}
    </Modal>
  )
}

interface FlaggingProps extends FlagDialogProps, DeviceList {
  readonly flags: Flags
  /** the directories that it is in, the bucket first */
  readonly above: ReadonlyArray<Directory>
}

const resourceOf = ({ kind, of }: Entry): Resource => ({
  resourceType: kind,
  resourceId: kind === "file" ? of.versionGroupId : of.id
})

interface Deciding {
  readonly choice: Choice
  readonly deviceIds: ReadonlyArray<string>
  /** the directory whose choice it is; undefined: its own, or nobody's */
  readonly by: Directory | undefined
}

/** The choice that holds now: the nearest, of the item itself or of a directory above. */
const decidingOf = ({ above, entry, flags }: FlaggingProps): Deciding => {
  const places = [
    { ...resourceOf(entry), by: undefined },
    ...above.toReversed().map((by) => ({ ...resourceOf({ kind: "directory", of: by }), by }))
  ]
  for (const { by, resourceId, resourceType } of places) {
    const isIt = (one: Resource) => one.resourceId === resourceId && one.resourceType === resourceType
    if (flags.excluded.some(isIt)) return { choice: "none", deviceIds: [], by }
    const flag = flags.subscriptions.find(isIt)
    if (flag !== undefined) return { choice: flag.scope, deviceIds: flag.deviceIds, by }
  }
  return { choice: "none", deviceIds: [], by: undefined }
}

const Flagging = (props: FlaggingProps) => {
  const { devices, entry, onClose } = props
  const change = useChange()
  const deciding = decidingOf(props)
  const [choice, setChoice] = useState<Choice>(deciding.choice)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(deciding.deviceIds))
  const onSubmit = async (): Promise<void> => {
    const json = {
      ...resourceOf(entry),
      enabled: choice !== "none",
      ...(choice === "selected" && { scope: choice, deviceIds: [...chosen] })
    }
    if (await change.run((ask) => ask(path, { method: "POST", json }))) onClose()
  }
  return (
    <Form change={change} submit="Save" onSubmit={() => void onSubmit()}>
      <p class="hint">
        {entry.kind === "directory"
          ? "The directory with all that is in it is kept on these devices."
          : "The file is kept on these devices."}{" "}
        {deciding.by === undefined
          ? "The nearest choice decides: a file’s own, then its directory’s, and so on upwards."
          : `So far the choice for ${deciding.by.path} holds.`}
      </p>
      <Choices<Choice>
        legend="Kept on"
        of={[
          { value: "all", label: "All devices", hint: "later ones too" },
          { value: "selected", label: "Chosen devices" },
          { value: "none", label: "None" }
        ]}
        chosen={choice}
        onChosen={setChoice}
      />
      {choice === "selected" && <Chosen devices={devices} chosen={chosen} onChosen={setChosen} />}
      {choice === "none" && (
        <p class="hint">
          Below a directory that is kept on devices, this one is left out. Files that are on a device stay
          there.
        </p>
      )}
    </Form>
  )
}

interface ChosenProps extends DeviceList {
  readonly chosen: ReadonlySet<string>
  onChosen(chosen: ReadonlySet<string>): void
}

const Chosen = ({ chosen, devices, onChosen }: ChosenProps) => {
  const toggle = (id: string, isOn: boolean): void => {
    const others = [...chosen].filter((one) => one !== id)
    onChosen(new Set(isOn ? [...others, id] : others))
  }
  return (
    <fieldset class="choices">
      <legend>Devices</legend>
      {devices.map(({ id, name }) => (
        <label key={id} class="check">
          <input
            type="checkbox"
            checked={chosen.has(id)}
            onChange={({ currentTarget }) => toggle(id, currentTarget.checked)}
          />
          {name}
        </label>
      ))}
      {devices.length === 0 && <p class="hint">You have no devices yet.</p>}
    </fieldset>
  )
}
