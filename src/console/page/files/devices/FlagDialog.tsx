import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { Form } from "../../parts/Form.tsx"
import { Modal } from "../../parts/Modal.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { Choices } from "../share/Choices.tsx"
import type { Entry } from "../Types.ts"
import { type DeviceList, path as devicesPath } from "./Device.ts"

/** A flag of a file or directory, as the API answers it. */
interface Flag {
  readonly resourceType: "file" | "directory"
  readonly resourceId: string
  readonly scope?: "all" | "selected"
  readonly deviceIds?: ReadonlyArray<string>
  readonly excluded?: boolean
}

interface FlagDialogProps {
  readonly entry: Entry
  onClose(): void
}

const path = "/api/sync/subscriptions"

type Choice = "all" | "selected" | "none"

/** Chooses the devices that get a file, or a directory with all that is in it. */
export const FlagDialog = ({ entry, onClose }: FlagDialogProps) => {
  const { data } = useAnswer<{ readonly subscriptions: ReadonlyArray<Flag> }>(path)
  const { data: list } = useAnswer<DeviceList>(devicesPath)
  return (
    <Modal title={`Devices of ${entry.of.name}`} onClose={onClose}>
      {data === undefined || list === undefined ? (
        <p class="hint">Asking for its devices …</p>
      ) : (
        <Flagging entry={entry} flags={data.subscriptions} devices={list.devices} onClose={onClose} />
      )}
    </Modal>
  )
}

interface FlaggingProps extends FlagDialogProps, DeviceList {
  readonly flags: ReadonlyArray<Flag>
}

const resourceIdOf = ({ kind, of }: Entry): string => (kind === "file" ? of.versionGroupId : of.id)

const choiceOf = (flag: Flag | undefined): Choice =>
  flag === undefined || flag.excluded === true ? "none" : (flag.scope ?? "all")

const Flagging = ({ devices, entry, flags, onClose }: FlaggingProps) => {
  const change = useChange()
  const flag = flags.find(
    ({ resourceId, resourceType }) => resourceType === entry.kind && resourceId === resourceIdOf(entry)
  )
  const [choice, setChoice] = useState<Choice>(choiceOf(flag))
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(flag?.deviceIds))
  const onSubmit = async (): Promise<void> => {
    const json = {
      ...{ resourceType: entry.kind, resourceId: resourceIdOf(entry), enabled: choice !== "none" },
      ...(choice === "selected" && { scope: choice, deviceIds: [...chosen] })
    }
    if (await change.run((ask) => ask(path, { method: "POST", json }))) onClose()
  }
  const toggle = (id: string, isOn: boolean): void => {
    const others = [...chosen].filter((one) => one !== id)
    setChosen(new Set(isOn ? [...others, id] : others))
  }
  return (
    <Form change={change} submit="Save" onSubmit={() => void onSubmit()}>
      <p class="hint">
        {entry.kind === "directory"
          ? "The directory with all that is in it is kept on these devices."
          : "The file is kept on these devices."}{" "}
        The nearest choice decides: a file’s own, then its directory’s, and so on upwards.
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
      {choice === "selected" && (
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
      )}
      {choice === "none" && (
        <p class="hint">
          Below a directory that is kept on devices, this one is left out. Files that are on a device stay
          there.
        </p>
      )}
    </Form>
  )
}
