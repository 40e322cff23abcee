import type { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { AgentErrorCode, byeReasons, closeCodes, PromptStatus } from "#schemas/agents/ServerFrame.ts"
import type { ToolErrorCode } from "#schemas/agents/ToolCall.ts"

/** Meanings of the words of protocol 1, for its reference. The types hold the lists complete. */

export const errorMeanings: Readonly<Record<AgentErrorCode, string>> = {
  bad_frame: "The frame is no JSON object, has no known type, or a field of it is wrong.",
  bad_protocol: "hello asks for a protocol that is not spoken here.",
  hello_required: "The first frame was no hello, or none came in time.",
  unknown_session: "There is no session with this id, or it cannot be resumed any more.",
  not_owner: "The session is somebody else's.",
  workspace_mismatch: "The session belongs to another workspace root.",
  busy: "A prompt is worked on already, or the queue is full.",
  unknown_call: "No call with this id is open.",
  model_forbidden: "The key may not use this model, there is none of this name, or it cannot call tools.",
  insufficient_credits: "Neither the plan's allowance nor the credits cover the call.",
  rate_limited: "Too many live sessions of this key, or too many frames a second.",
  overloaded: "Not possible at the moment; try again after retryAfterMs.",
  upstream_error: "No model could answer.",
  context_overflow: "The conversation does not fit the model, even when it is summed up.",
  budget_exceeded: "What the session may cost is spent.",
  internal: "A fault of the server; its log has the cause."
}

export const toolErrorMeanings: Readonly<Record<ToolErrorCode, string>> = {
  denied: "The person, or a rule of the client, said no.",
  outside_workspace: "The path leads out of the workspace.",
  not_found: "There is no such file.",
  not_unique: "oldText does not occur, or more than once, or edits overlap.",
  too_large: "The file is larger than the tool takes.",
  binary: "The file is no text.",
  timeout: "It took longer than timeoutMs.",
  cancelled: "It was cancelled.",
  interrupted: "Whether it was made, or how far, is not known: its client was ended meanwhile.",
  invalid_params: "The parameters are wrong.",
  exec_failed: "The command could not be started, or the system refused the operation."
}

export const closeMeanings: Readonly<Record<keyof typeof closeCodes, string>> = {
  normal: "The client, or the owner of the session, ended it.",
  tooBig: "A frame was larger than a frame may be.",
  restart:
    "The server stops, has too much to do, or gave the session to another: come again after retryAfterMs.",
  protocol: "A fatal error; the error frame before it says which.",
  revoked: "The key is not valid any more.",
  idle: "Nothing came from the client for too long.",
  superseded: "A newer connection has taken the session over.",
  slow: "The client does not read: too much waits for it."
}

export const byeMeanings: Readonly<Record<(typeof byeReasons)[number], string>> = {
  client_bye: "The client said bye.",
  superseded: "A newer connection has taken the session over.",
  restart: "The server stops.",
  revoked: "The key was revoked.",
  ended: "The owner ended the session.",
  idle: "No sign of life.",
  slow: "The client does not read.",
  protocol: "After a fatal error.",
  moved: "Another server has the session now: come again."
}

export const statusMeanings: Readonly<Record<PromptStatus, string>> = {
  completed: "The model has nothing more to do.",
  aborted: "Somebody ended it.",
  error: "It failed; error says why.",
  budget: "What the session may cost is spent.",
  max_turns: "It took too many turns."
}

export const limitMeanings: Readonly<Record<keyof typeof agentLimits, string>> = {
  frameBytes: "One frame, in bytes; above it the socket is closed with 1009",
  helloMillis: "hello has to come within this, in milliseconds",
  pingMillis: "Milliseconds between pings",
  deadMillis: "A socket that was silent for so many milliseconds is closed with 4008",
  promptBytes: "text of prompt and steer, in bytes of UTF-8",
  promptImages: "Images of one prompt",
  queue: "Steers and follow-ups that wait",
  queueBytes: "What waits, together, in bytes as JSON",
  callsInFlight: "Calls of one message under way at once; the next come when these are answered",
  streamChunkBytes: "data of one tool.stream, in bytes of UTF-8",
  streamBytes: "tool.stream of one call, in bytes; what comes after is left out",
  execSeconds: "A command may run so long when the model does not say, in seconds",
  execSecondsMax: "A command may run so long at most, in seconds",
  textLines: "Lines of text that one tool gives the model …",
  textBytes: "… and bytes of it",
  errorCharacters: "Characters of a tool's error; what comes after is left out",
  grepLineCharacters: "Characters of one line that grep shows",
  grepMatches: "Matches that grep gives when the model does not say",
  globEntries: "Paths that find gives when the model does not say",
  listEntries: "Names that ls gives when the model does not say"
}
