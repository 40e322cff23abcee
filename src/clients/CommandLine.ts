import { Console, Context, Layer, Option, Predicate, Runtime } from "effect"
import { CliError, CliOutput, type Command, type HelpDoc } from "effect/cli"
import { exitCodes } from "./ExitCodes.ts"

/** The output of both command lines: help on stdout when asked for, faults on stderr in one line or two. */

type Usage = CliError.NonShowHelpErrors

const hint = (suggestions: ReadonlyArray<string>): string =>
  suggestions.length === 0 ? "" : `; did you mean ${suggestions.map((one) => `"${one}"`).join(" or ")}?`

const wordsOf = (error: Usage): string => {
  switch (error._tag) {
    case "UnknownSubcommand":
      return `unknown command "${error.subcommand}"${hint(error.suggestions)}`
    case "UnrecognizedOption":
      return `unknown flag ${error.option}${hint(error.suggestions)}`
    case "MissingArgument":
      return `missing argument: ${error.argument}`
    case "MissingOption":
      return `missing flag: --${error.option}`
    case "UnexpectedArgument":
      return `unexpected ${error.arguments.map((one) => JSON.stringify(one)).join(", ")}`
    default:
      return error.message
  }
}

/** One line of text that cannot steer the terminal. */
const printable = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.replace(/\s*\n\s*/g, " ").replace(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd")

/** A fault on stderr: in words, or one line of JSON with the code that the program ends with. */
export const faultText = (asJson: boolean, message: string, exitCode: number): string =>
  asJson ? JSON.stringify({ error: { message, exitCode } }) : message

/** Choices that stand in a flag's place are not listed again behind its description. */
const withoutRepetition = (flag: HelpDoc.FlagDoc): HelpDoc.FlagDoc => ({
  ...flag,
  description: Option.map(flag.description, (text) =>
    flag.type.includes("|") ? text.replace(/\s*\(choices: [^)]*\)$/, "") : text
  )
})

const formatterOf = (name: string, asJson: boolean): CliOutput.Formatter => {
  const plain = CliOutput.defaultFormatter()
  const fault = (error: CliError.CliError): string => {
    const cause = error._tag === "UserError" ? error.cause : error
    const exitCode = Predicate.isObject(cause) ? Runtime.getErrorExitCode(cause) : exitCodes.failed
    return faultText(asJson, `${name}: ${error.message}`, exitCode)
  }
  return {
    ...plain,
    formatHelpDoc: (doc) =>
      plain.formatHelpDoc({
        ...doc,
        flags: doc.flags.map(withoutRepetition),
        ...(doc.globalFlags === undefined ? {} : { globalFlags: doc.globalFlags.map(withoutRepetition) })
      }),
    formatCliError: fault,
    formatError: fault,
    formatErrors: (errors) => errors.map(fault).join("\n")
  }
}

const presenterOf = (formatter: CliOutput.Formatter, asJson: boolean): CliOutput.Presenter => ({
  present: (event) => {
    switch (event._tag) {
      case "Help":
        return Console.log(formatter.formatHelpDoc(event.helpDoc))
      case "Version":
        return Console.log(`${event.name} ${event.version}`)
      case "InvalidInvocation": {
        const command = event.commandPath.join(" ")
        const faults = event.errors.map((error) => printable(wordsOf(error))).join("; ")
        const message = `${command}: ${faults}`
        const isCommand = event.errors.some(({ _tag }) => _tag === "UnknownSubcommand")
        const where = `${isCommand ? "All commands" : "How it is called"}: ${command} --help`
        return Console.error(asJson ? faultText(true, message, exitCodes.usage) : `${message}\n${where}`)
      }
    }
  }
})

/** Whether `--json` is among the flags. */
export const isJson = (args: ReadonlyArray<string>): boolean => {
  const end = args.indexOf("--")
  return args.slice(0, end < 0 ? args.length : end).includes("--json")
}

/** `args`: where `--json` is among them, faults are JSON too. */
export const layer = (name: string, args: ReadonlyArray<string>): Layer.Layer<never> => {
  const formatter = formatterOf(name, isJson(args))
  return Layer.succeedContext(
    Context.make(CliOutput.Formatter, formatter).pipe(
      Context.add(CliOutput.Presenter, presenterOf(formatter, isJson(args)))
    )
  )
}

/** Whether the words name a command below this one; a word too many is the parser's to refuse. */
const isKnown = (command: Command.Command.Any, words: ReadonlyArray<string>): boolean => {
  const [first, ...rest] = words
  if (first === undefined) return true
  const below = command.subcommands.flatMap(({ commands }) => [...commands])
  const found = below.find(({ name }) => name === first)
  return found !== undefined && isKnown(found, rest)
}

/** `help`, `help COMMAND` and `version` as the flags that they stand for; a command that is none stays, to be refused. */
export const withWords = (
  command: Command.Command.Any,
  args: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const [first, ...rest] = args
  if (first === "version" && rest.length === 0) return ["--version"]
  if (first !== "help") return args
  return isKnown(command, rest) ? [...rest, "--help"] : rest
}

/** The code that a failure ends with: its own, 2 where the call was wrong. */
export const exitCodeOf = (error: unknown): number => {
  if (CliError.isCliError(error) && error._tag === "ShowHelp")
    return error.errors.length === 0 ? exitCodes.done : exitCodes.usage
  return Predicate.isObject(error) ? Runtime.getErrorExitCode(error) : exitCodes.failed
}

/** Whether it was shown already, as help, wrong usage, or in the failure's own words. */
export const isShown = (error: unknown): boolean =>
  CliError.isCliError(error) || (Predicate.isObject(error) && CliError.getUserMessage(error) !== undefined)
