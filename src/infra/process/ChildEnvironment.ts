/** The variables that a program needs to be found and to run: no setting of the server, and none of its secrets. */
const passed = ["PATH", "HOME", "TMPDIR", "LANG", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"]

/** The environment of a child process: the variables above, and those given by name. */
export const childEnvironment = (
  own: Readonly<Record<string, string>> = {}
): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(
    passed.flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value]]
    })
  ),
  ...own
})
