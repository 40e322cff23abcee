/** Files that a program reads and then runs something, though its user asked it for something else. */
export interface SelfRunning {
  /**
   * Names from some directory of the workspace down, each at any depth; a directory covers all below it. `*` in a last name
   * stands for any letters.
   */
  readonly paths: ReadonlyArray<string>
  /** the program, and on which occasion it runs what they say */
  readonly by: string
  /** where that is documented */
  readonly source: string
}

/**
 * The line is drawn at what runs although its user meant something else: a commit, a `cd`, an opened folder, a started shell
 * or agent, an installation. Not in it, and so written without a question:
 * - what a user runs on purpose, by name: sources, tests, scripts of package.json, Makefile, build.rs, build.gradle,
 *   Dockerfile, eslint.config.js, workflows that run on a server
 * - data without a program in it: .env, .nvmrc, .editorconfig, .gitignore; .gitattributes, whose drivers are only what a
 *   configuration of git, which is protected, says they are
 * - prose for models (AGENTS.md, CLAUDE.md, .cursorrules): it is to be written by models, and what an agent does because of
 *   it is subject to that agent's own questions
 * `.git` itself is not in it either: it is refused, or needs its own approval.
 * A line has `by`, `paths` and `source`.
 */
export const selfRunningFiles: ReadonlyArray<SelfRunning> = `
git, at commits, where core.hooksPath names it | .githooks .git-hooks | https://git-scm.com/docs/githooks
git, where include.path names it | .gitconfig | https://git-scm.com/docs/git-config#_includes
git, for submodules | .gitmodules | https://git-scm.com/docs/gitmodules
husky, at commits | .husky .huskyrc .huskyrc.* husky.config.* | https://typicode.github.io/husky/how-to.html
lefthook, at commits | lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook.jsonc .lefthook.* lefthook-local.* .lefthook-local.* .lefthook .lefthook-local .config/lefthook.* .config/lefthook-local.* | https://lefthook.dev/configuration/
pre-commit, at commits | .pre-commit-config.yaml .pre-commit-config.yml prek.toml | https://pre-commit.com/#adding-pre-commit-plugins-to-your-project
simple-git-hooks, at commits | .simple-git-hooks.* simple-git-hooks.* | https://github.com/toplenboren/simple-git-hooks#readme
overcommit, at commits | .overcommit.yml .overcommit_gems.rb | https://github.com/sds/overcommit#readme
CaptainHook and GrumPHP, at commits | captainhook.json grumphp.yml grumphp.yml.dist | https://docs.captainhook.info/
lint-staged, at commits | .lintstagedrc .lintstagedrc.* lint-staged.config.* .nano-staged.* nano-staged.* | https://github.com/lint-staged/lint-staged#configuration
Mercurial, in its hooks | .hg/hgrc .hg/hgrc-not-shared | https://www.mercurial-scm.org/doc/hgrc.5.html
Sapling and Jujutsu, in their hooks and tools | .sl/config .jj/repo/config.toml | https://jj-vcs.github.io/jj/latest/config/
Visual Studio Code, when the folder is opened | .vscode *.code-workspace | https://code.visualstudio.com/docs/debugtest/tasks#_run-behavior
Visual Studio, when the folder is opened | .vs | https://learn.microsoft.com/visualstudio/ide/customize-build-and-debug-tasks-in-visual-studio
JetBrains editors, when the folder is opened | .idea .fleet | https://www.jetbrains.com/help/idea/settings-tools-startup-tasks.html
Zed, when the folder is opened | .zed | https://zed.dev/docs/configuring-zed
Helix, when the folder is opened | .helix | https://docs.helix-editor.com/languages.html
Vim and Neovim, when they start there | .nvim.lua .nvimrc .exrc .vimrc .gvimrc _vimrc .lvimrc .vim | https://neovim.io/doc/user/options.html#'exrc'
Emacs, when a file is opened | .dir-locals.el .dir-locals-2.el | https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html
Sublime Text, when the project is opened | *.sublime-project *.sublime-workspace | https://www.sublimetext.com/docs/projects.html
Eclipse, at builds it starts itself | .externalToolBuilders | https://help.eclipse.org/latest/topic/org.eclipse.platform.doc.user/gettingStarted/qs-96_non_ant_pjt_builders.htm
development containers, when the folder is opened (initializeCommand) | .devcontainer .devcontainer.json | https://containers.dev/implementors/json_reference/#lifecycle-scripts
rust-analyzer, when a file is opened | rust-analyzer.toml .rust-analyzer.toml | https://rust-analyzer.github.io/book/configuration.html
agents, as servers that they start (MCP) | .mcp.json | https://code.claude.com/docs/en/mcp#project-scope
Claude Code, in hooks and commands | .claude | https://code.claude.com/docs/en/hooks
Cursor, in hooks and MCP servers | .cursor | https://cursor.com/docs/agent/hooks
Codex | .codex | https://github.com/openai/codex/blob/main/docs/config.md
Gemini CLI and Qwen Code | .gemini .qwen | https://geminicli.com/docs/reference/configuration/
Windsurf | .windsurf | https://docs.windsurf.com/windsurf/cascade/hooks
aider, in lint and test commands | .aider.conf.yml .aider.conf.yaml | https://aider.chat/docs/config/aider_conf.html
opencode and Crush | .opencode opencode.json opencode.jsonc .crush.json crush.json | https://opencode.ai/docs/config/
pi, in extensions | .pi | https://github.com/badlogic/pi-mono/tree/main/packages/coding-agent#readme
Amp, Continue, Factory, Goose, Kiro, Roo Code, Trae | .amp .continue .continuerc.json .factory .goose .kiro .roo .trae | https://kiro.dev/docs/hooks/
shells, where this is the home directory | .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .config/fish | https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html
direnv, at cd | .envrc | https://direnv.net/man/direnv.1.html
autoenv, at cd | .autoenv .autoenv.zsh .autoenv_leave.zsh .env.leave | https://github.com/hyperupcall/autoenv#readme
mise and asdf, at cd and by the programs they stand for | .tool-versions mise.toml mise.*.toml .mise.toml .mise.*.toml mise/config.toml .mise .config/mise .config/mise.toml .rtx.toml | https://mise.jdx.dev/hooks.html
ripgrep, where RIPGREP_CONFIG_PATH names it (--pre) | .ripgreprc | https://github.com/BurntSushi/ripgrep/blob/master/GUIDE.md#configuration-file
npm and pnpm, at every command (script-shell, node-options) | .npmrc | https://docs.npmjs.com/cli/configuring-npm/npmrc
pnpm, at installations | .pnpmfile.cjs .pnpmfile.mjs pnpmfile.js | https://pnpm.io/pnpmfile
Yarn, at every command | .yarnrc .yarnrc.yml .yarn/plugins .yarn/releases .yarn/sdks .pnp.cjs .pnp.js .pnp.loader.mjs | https://yarnpkg.com/configuration/yarnrc#yarnPath
Bun, at every command (preload) | bunfig.toml .bunfig.toml | https://bun.com/docs/runtime/bunfig
pip, at installations | pip.conf pip.ini | https://pip.pypa.io/en/stable/topics/configuration/
conda, at every command | .condarc | https://docs.conda.io/projects/conda/en/latest/user-guide/configuration/use-condarc.html
Bundler, at every command | .bundle | https://bundler.io/man/bundle-config.1.html
cargo and rustup, at every command (runner, rustc-wrapper, a toolchain's path) | .cargo/config.toml .cargo/config rust-toolchain.toml rust-toolchain | https://doc.rust-lang.org/cargo/reference/config.html
Maven, at every command | .mvn .mavenrc | https://maven.apache.org/configure.html
Gradle, before any build | gradle/wrapper init.gradle init.gradle.kts | https://docs.gradle.org/current/userguide/init_scripts.html
Bazel and Buck, at every command | .bazelrc .bazeliskrc .buckconfig .buckconfig.local | https://bazel.build/run/bazelrc
act and Buildkite agents, at every run | .actrc .buildkite/hooks | https://buildkite.com/docs/agent/v3/hooks
R, Octave and irb, when they start there | .Rprofile .octaverc .irbrc .pryrc | https://rdrr.io/r/base/Startup.html
GDB and LLDB, when they start there | .gdbinit .lldbinit | https://sourceware.org/gdb/current/onlinedocs/gdb.html/Init-File-in-the-Current-Directory.html
`
  .trim()
  .split("\n")
  .map((line) => {
    const [by = "", paths = "", source = ""] = line.split(" | ")
    return { by, paths: paths.split(" "), source }
  })

/**
 * Directories of packages that others wrote: many ship such files, which nothing reads there. Repositories of git are looked
 * for in them all the same, as git obeys those wherever its user is.
 */
export const packageDirectories: ReadonlySet<string> = new Set(
  "node_modules bower_components site-packages vendor .venv venv .tox Pods".split(" ")
)
