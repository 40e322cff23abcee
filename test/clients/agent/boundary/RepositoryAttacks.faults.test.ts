import { findBubblewrap } from "#src/clients/agent/exec/Bubblewrap.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { AttackStage, attacksOn, type Attack } from "./Attack.ts"

const found = await findBubblewrap("/nonexistent")
const bubblewrap = requirement("bubblewrap", () => ("reason" in found ? found.reason : undefined))

const project = [
  "git init -q && mkdir -p src/deep node_modules/x",
  "echo a > src/a; echo b > src/deep/b; echo x > node_modules/x/x.js; echo node_modules > .gitignore",
  "git add . && git commit -qm first"
].join("\n")

/** The directory is a repository whose working tree it is, with one setting more; `git` is not named, as words are asked for. */
const bare = (directory: string, setting: string): string =>
  `mkdir -p ${directory} && cd ${directory} && mkdir -p objects refs && echo 'ref: refs/heads/main' > HEAD && printf '[core]\\nrepositoryformatversion=0\\nbare=false\\nworktree=.\\n${setting}\\n' > config; cd @ROOT`
const fsmonitor = 'fsmonitor="@PWN; false"'

/** A repository below the workspace, with settings that git runs something for. */
const nested = (directory: string, ...settings: ReadonlyArray<string>): string =>
  [
    `mkdir -p ${directory}; g=$(echo git); $g init -q ${directory}; cd ${directory}`,
    ...settings.map((setting) => `$g config ${setting}`),
    "cd @ROOT"
  ].join("\n")

const hook = (name: string): string =>
  `mkdir -p src/.git/hooks; printf '#!/bin/sh\\n@PWN\\n' > src/.git/hooks/${name}; chmod +x src/.git/hooks/${name}`

const storeConfig = '[core]\nrepositoryformatversion=0\n[alias]\nst="!@PWN"\n'

const planted: ReadonlyArray<Attack> = [
  {
    name: "a repository in a directory that is there: git status",
    calls: [bare("src", fsmonitor)],
    then: "cd src && git status"
  },
  { name: "an alias in it", calls: [bare("src", '[alias]\\nst="!@PWN"')], then: "cd src && git st" },
  {
    name: "an editor in it",
    calls: [bare("src", 'editor="@PWN; true"')],
    then: "unset GIT_EDITOR; cd src && git commit --allow-empty"
  },
  {
    name: "a transport's program in it",
    calls: [bare("src", 'sshCommand="@PWN; false"\\n[remote "o"]\\nurl=ssh://x.invalid/y')],
    then: "cd src && git fetch o"
  },
  {
    name: "a signing program in it",
    calls: [
      bare("src", "[commit]\\ngpgsign=true\\n[gpg]\\nprogram=@ROOT/src/p") +
        "; printf '#!/bin/sh\\n@PWN\\n' > src/p; chmod +x src/p"
    ],
    then: "cd src && git commit --allow-empty -m x"
  },
  { name: "in a deeper directory", calls: [bare("src/deep", fsmonitor)], then: "cd src/deep && git status" },
  { name: "in a directory that is new", calls: [bare("new/er", fsmonitor)], then: "cd new/er && git status" },
  {
    name: "in a package",
    calls: [bare("node_modules/x", fsmonitor)],
    then: "cd node_modules/x && git status"
  },
  {
    name: "twelve directories down",
    calls: [bare("a/b/c/d/e/f/g/h/i/j/k/l", fsmonitor)],
    then: "cd a/b/c/d/e/f/g/h/i/j/k/l && git status"
  },
  {
    name: "built elsewhere and moved there",
    calls: [`${bare("t", fsmonitor)}; mv t/* src/; rmdir t`],
    then: "cd src && git status"
  },
  {
    name: "with the directory exchanged for another one",
    calls: [`${bare("t", fsmonitor)}; mv src old; mv t src`],
    then: "cd src && git status"
  },
  {
    name: "with the times of its directory set back",
    calls: [`touch -r src ref; ${bare("src", fsmonitor)}; touch -r ref src; rm ref`],
    then: "cd src && git status"
  },
  {
    name: "in two commands",
    calls: ["cd src && mkdir objects && echo 'ref: refs/heads/main' > HEAD", bare("src", fsmonitor)],
    then: "cd src && git status"
  },
  {
    name: "begun by a file tool, ended by a command",
    calls: [
      { write: "src/HEAD", content: "ref: refs/heads/main\n" },
      {
        write: "src/config",
        content: '[core]\nrepositoryformatversion=0\nbare=false\nworktree=.\nfsmonitor="@PWN; false"\n'
      },
      "mkdir src/objects src/refs"
    ],
    then: "cd src && git status"
  },
  {
    name: "with its objects in another directory (commondir)",
    calls: [
      `mkdir -p store/objects store/refs; printf '${storeConfig.replaceAll("\n", "\\n")}' > store/config; echo ../store > src/commondir; echo 'ref: refs/heads/main' > src/HEAD`
    ],
    then: "cd src && git st"
  },
  {
    name: "the same by file tools alone",
    calls: [
      { write: "store/objects/x", content: "" },
      { write: "store/refs/x", content: "" },
      { write: "store/config", content: storeConfig },
      { write: "src/commondir", content: "../store\n" },
      { write: "src/HEAD", content: "ref: refs/heads/main\n" }
    ],
    then: "cd src && git st"
  },
  {
    name: "by a command that takes too long",
    calls: [`${bare("src", fsmonitor)}\nsleep 1000`],
    timeout: 1,
    then: "cd src && git status"
  },
  {
    name: "by a command that kills itself",
    calls: [`(${bare("src", fsmonitor)}); [ $PPID = 1 ] || kill -9 $$`],
    then: "cd src && git status"
  },
  {
    name: "by a command that fails",
    calls: [`(${bare("src", fsmonitor)}); exit 1`],
    then: "cd src && git status"
  },
  {
    name: "with a HEAD that is a link",
    calls: [`${bare("src", fsmonitor)}; cd src; rm HEAD; ln -s refs/heads/main HEAD`],
    then: "cd src && git status"
  },
  {
    name: "with objects that are a link",
    calls: [`${bare("src", fsmonitor)}; mv src/objects store; ln -s ../store src/objects`],
    then: "cd src && git status"
  }
]

const nestedOnes: ReadonlyArray<Attack> = [
  {
    name: "core.fsmonitor of a new one: git status",
    calls: [nested("src", "core.fsmonitor '@PWN; false'")],
    then: "cd src && git status"
  },
  {
    name: "a hook of a new one: git commit",
    calls: [nested("src"), hook("pre-commit")],
    then: "cd src && git commit --allow-empty -m x"
  },
  {
    name: "a hook of a new one: git checkout",
    calls: [nested("src"), hook("post-checkout")],
    then: "cd src && git add a; git commit -qm x; git checkout -b y"
  },
  {
    name: "core.hooksPath of a new one",
    calls: [
      `${nested("src", "core.hooksPath ../h")}; mkdir h; printf '#!/bin/sh\\n@PWN\\n' > h/pre-commit; chmod +x h/pre-commit`
    ],
    then: "cd src && git commit --allow-empty -m x"
  },
  {
    name: "a filter of a new one: git add",
    calls: [`${nested("src", "filter.f.clean '@PWN; cat'")}; echo '* filter=f' > src/.gitattributes`],
    then: "cd src && git add a"
  },
  {
    name: "a smudging filter of a new one: git checkout",
    calls: [`${nested("src", "filter.f.smudge '@PWN; cat'")}; echo '* filter=f' > src/.gitattributes`],
    then: "cd src && git add . && rm a && git checkout a"
  },
  {
    name: "diff.external of a new one: git diff",
    calls: [nested("src", "diff.external '@PWN; true'")],
    then: "cd src && git add a && echo c >> a && git diff"
  },
  {
    name: "a textconv of a new one: git diff",
    calls: [`${nested("src", "diff.f.textconv '@PWN; cat'")}; echo '* diff=f' > src/.gitattributes`],
    then: "cd src && git add a && echo c >> a && git diff"
  },
  {
    name: "a merge driver of a new one: git merge",
    calls: [`${nested("src", "merge.f.driver '@PWN; true'")}; echo '* merge=f' > src/.gitattributes`],
    then: "cd src && git add . && git commit -qm 1 && git checkout -qb y && echo c >> a && git commit -qam 2 && git checkout -q main && echo d >> a && git commit -qam 3; git merge y"
  },
  { name: "an alias of a new one", calls: [nested("src", "alias.st '!@PWN'")], then: "cd src && git st" },
  {
    name: "the program of a remote of a new one: git fetch",
    calls: [nested("src", "remote.o.url .", "remote.o.uploadpack '@PWN; false'")],
    then: "cd src && git fetch o"
  },
  {
    name: "a sequence editor of a new one: git rebase",
    calls: [nested("src", "sequence.editor '@PWN; true'")],
    then: "unset GIT_EDITOR; cd src && git add a && git commit -qm 1 && git commit --allow-empty -qm 2 && git rebase -i HEAD~1"
  },
  {
    name: "a new one, where it lies under its other name",
    calls: [nested("src", "alias.st '!@PWN'")],
    then: "cd src/set-aside-*-.git 2>/dev/null || cd src/.git; git st"
  },
  {
    name: "an included configuration",
    calls: [
      `${nested("src", "include.path ../inc")}; printf '[core]\\nfsmonitor="@PWN; false"\\n' > src/inc`
    ],
    then: "cd src && git status"
  },
  {
    name: "an included configuration with a condition",
    calls: [
      `${nested("src", "includeIf.gitdir:**.path ../inc")}; printf '[core]\\nfsmonitor="@PWN; false"\\n' > src/inc`
    ],
    then: "cd src && git status"
  },
  {
    name: "a configuration of the working tree alone",
    calls: [nested("src", "extensions.worktreeConfig true", "--worktree core.fsmonitor '@PWN; false'")],
    then: "cd src && git status"
  },
  {
    name: "a .git file that leads to a hidden one",
    calls: [
      `${nested("hidden", "core.fsmonitor '@PWN; false'", "core.worktree @ROOT/src")}; mv hidden/.git store; echo 'gitdir: ../store' > src/.git`
    ],
    then: "cd src && git status"
  },
  {
    name: "a .git that is a link",
    calls: [
      `${nested("hidden", "core.fsmonitor '@PWN; false'")}; mv hidden/.git store; ln -s ../store src/.git`
    ],
    then: "cd src && git status"
  },
  {
    name: "a linked working tree",
    calls: [
      `${nested("hidden", "core.fsmonitor '@PWN; false'")}; cd hidden; g=$(echo git); $g -c user.name=A -c user.email=a@b commit -q --allow-empty -m x; $g worktree add -q ../wt`
    ],
    then: "cd wt && git status"
  },
  {
    name: "a copy of the workspace's own, changed",
    calls: [`cp -r .git src/.git; printf '[core]\\nfsmonitor="@PWN; false"\\n' >> src/.git/config`],
    then: "cd src && git status"
  },
  {
    name: "one while a commit is allowed",
    answer: "once",
    calls: [`SIGNALBOX_ASK=commit true; ${nested("src", "core.fsmonitor '@PWN; false'")}`],
    asked: ["commit"],
    then: "cd src && git status"
  },
  {
    name: "one that a checkout of a commit brings",
    answer: "once",
    calls: [
      `mkdir -p t/objects t/refs; echo > t/objects/x; echo > t/refs/x; echo 'ref: refs/heads/main' > t/HEAD; printf '[core]\\nrepositoryformatversion=0\\nbare=false\\nworktree=.\\nfsmonitor="@PWN; false"\\n' > t/config; git add -f t && git -c user.name=A -c user.email=a@b commit -qm evil && git rm -rq --cached t && git -c user.name=A -c user.email=a@b commit -qm clean && rm -rf t && git checkout -q HEAD~1`
    ],
    asked: ["commit"],
    then: "cd t && git status"
  }
]

describeWith(bubblewrap, "attacks: a repository is planted", () => {
  attacksOn(new AttackStage(project), planted)
})

describeWith(bubblewrap, "attacks: a repository below the workspace is made", () => {
  attacksOn(new AttackStage(project), nestedOnes)
})

describeWith(bubblewrap, "attacks: where the root is no repository", () => {
  attacksOn(new AttackStage("mkdir -p src/deep && echo a > src/a"), [
    {
      name: "one in the root itself",
      calls: [bare(".", fsmonitor)],
      then: "git status"
    },
    {
      name: "one in the root, moved there",
      calls: [`${bare("t", fsmonitor)}; mv t/* .; rmdir t`],
      then: "git status"
    },
    { name: "a .git in the root", calls: [nested(".", "core.fsmonitor '@PWN; false'")], then: "git status" },
    {
      name: "a .git file in the root",
      calls: [
        `${nested("t", "core.fsmonitor '@PWN; false'", "core.worktree @ROOT")}; mv t/.git store; echo 'gitdir: store' > .git`
      ],
      then: "git status"
    },
    { name: "one in a directory", calls: [bare("src", fsmonitor)], then: "cd src && git status" },
    {
      name: "one in a new directory",
      calls: [nested("x", "core.fsmonitor '@PWN; false'")],
      then: "cd x && git status"
    },
    {
      name: "by file tools",
      calls: [
        { write: "refs/x", content: "" },
        { write: "objects/x", content: "" },
        {
          write: "config",
          content: '[core]\nrepositoryformatversion=0\nbare=false\nworktree=.\nfsmonitor="@PWN; false"\n'
        },
        { write: "HEAD", content: "ref: refs/heads/main\n" }
      ],
      then: "git status"
    }
  ])
})

const evilConfig = `printf '[core]\\nfsmonitor="@PWN; false"\\n'`
const evilHook = (path: string): string => `printf '#!/bin/sh\\n@PWN\\n' > ${path}; chmod +x ${path}`

describeWith(bubblewrap, "attacks: a user's own repositories", () => {
  const own = [
    project,
    "git init -q lib; git -C lib commit -q --allow-empty -m x",
    "git clone -q --bare lib fixture.git; git clone -q fixture.git clone; git -C clone remote set-url origin ../fixture.git; git -C clone commit -q --allow-empty -m y",
    "mkdir -p node_modules/y a/b/c/d/e/f/g/h; git init -q node_modules/y; git init -q a/b/c/d/e/f/g/h",
    "git worktree add -q ../side 2>/dev/null; git worktree prune; rm -rf ../side",
    "git -c protocol.file.allow=always submodule --quiet add ./lib sub; git commit -qam sub"
  ].join("\n")
  attacksOn(new AttackStage(own), [
    {
      name: "the configuration of the workspace's",
      calls: [`${evilConfig} >> .git/config`],
      then: "git status"
    },
    {
      name: "a hook of the workspace's",
      calls: [evilHook(".git/hooks/pre-commit")],
      then: "git commit --allow-empty -m x"
    },
    {
      name: "the configuration of a nested one",
      calls: [`${evilConfig} >> lib/.git/config`],
      then: "cd lib && git status"
    },
    {
      name: "a nested one, exchanged",
      calls: [`cp -r lib other; ${evilConfig} >> other/.git/config; mv lib old; mv other lib`],
      then: "cd lib && git status"
    },
    {
      name: "one in a package",
      calls: [`${evilConfig} >> node_modules/y/.git/config`],
      then: "cd node_modules/y && git status"
    },
    {
      name: "one eight directories down",
      calls: [`${evilConfig} >> a/b/c/d/e/f/g/h/.git/config`],
      then: "cd a/b/c/d/e/f/g/h && git status"
    },
    {
      name: "a hook of a bare one: git push",
      calls: [evilHook("fixture.git/hooks/post-receive")],
      then: "cd clone && git push"
    },
    {
      name: "the configuration of a bare one: an alias",
      calls: ["printf '[alias]\\nst=\"!@PWN\"\\n' >> fixture.git/config"],
      then: "cd fixture.git && git st"
    },
    {
      name: "a bare one, by file tools",
      calls: [
        {
          write: "fixture.git/config",
          content: '[core]\nrepositoryformatversion=0\nbare=true\n[alias]\nst="!@PWN"\n'
        }
      ],
      then: "cd fixture.git && git st"
    },
    {
      name: "a commondir put into a bare one",
      calls: [
        "mkdir store; cp -r fixture.git/. store; printf '[alias]\\nst=\"!@PWN\"\\n' >> store/config; echo @ROOT/store > fixture.git/commondir"
      ],
      then: "cd fixture.git && git st"
    },
    {
      name: "the configuration of a submodule",
      calls: [`${evilConfig} >> .git/modules/sub/config`],
      then: "cd sub && git status"
    },
    {
      name: "the .git file of a submodule",
      calls: [
        `cp -r .git/modules/sub store; ${evilConfig} >> store/config; printf '[core]\\nworktree=@ROOT/sub\\n' >> store/config; echo 'gitdir: ../store' > sub/.git`
      ],
      then: "cd sub && git status"
    },
    {
      name: "a hook of a submodule",
      calls: [evilHook(".git/modules/sub/hooks/pre-commit")],
      then: "cd sub && git commit --allow-empty -m x"
    },
    {
      name: "all of them while a commit is allowed",
      answer: "once",
      calls: [
        `SIGNALBOX_ASK=commit true; ${evilConfig} | tee -a .git/config lib/.git/config .git/modules/sub/config`
      ],
      asked: ["commit"],
      then: "git status; cd lib && git status; cd ../sub && git status"
    },
    {
      name: "a hook by a file tool",
      calls: [{ write: ".git/hooks/pre-commit", content: "#!/bin/sh\n@PWN\n" }],
      then: "chmod +x .git/hooks/pre-commit; git commit --allow-empty -m x"
    }
  ])
})

const rebasing = "for i in 1 2 3; do echo $i > f$i; git add f$i; git commit -qm $i; done"
const stopped = "GIT_SEQUENCE_EDITOR=\"sed -i -e '1s/pick/edit/'\" git rebase -q -i HEAD~2"
const allowCommit = { answer: "once", asked: ["commit"] } as const

describeWith(bubblewrap, "attacks: a rebase that the user goes on with", () => {
  const goOn = "git rebase --continue"
  attacksOn(new AttackStage(project), [
    {
      name: "lines that git rebase -i left",
      before: rebasing,
      ...allowCommit,
      calls: [`GIT_SEQUENCE_EDITOR="sed -i -e '1s/pick/edit/' -e '1aexec @PWN'" git rebase -i HEAD~2`],
      then: goOn
    },
    {
      name: "lines of --exec",
      before: rebasing,
      ...allowCommit,
      calls: [`GIT_SEQUENCE_EDITOR="sed -i -e '1s/pick/edit/'" git rebase -i --exec '@PWN' HEAD~2`],
      then: goOn
    },
    {
      name: "lines put into a rebase of the user's",
      before: `${rebasing}; ${stopped}`,
      ...allowCommit,
      calls: ["SIGNALBOX_ASK=commit true; echo 'exec @PWN' >> .git/rebase-merge/git-rebase-todo"],
      then: goOn
    },
    {
      name: "in short, with blanks before",
      before: `${rebasing}; ${stopped}`,
      ...allowCommit,
      calls: ["SIGNALBOX_ASK=commit true; printf ' \\t x @PWN\\n' >> .git/rebase-merge/git-rebase-todo"],
      then: goOn
    },
    {
      name: "in a list that is a link to a file of the workspace",
      before: `${rebasing}; ${stopped}`,
      ...allowCommit,
      calls: [
        "SIGNALBOX_ASK=commit true; cp .git/rebase-merge/git-rebase-todo todo; ln -sf ../../todo .git/rebase-merge/git-rebase-todo",
        "echo 'exec @PWN' >> todo"
      ],
      then: goOn
    },
    {
      name: "in a directory that is a link",
      before: `${rebasing}; ${stopped}`,
      ...allowCommit,
      calls: [
        "SIGNALBOX_ASK=commit true; cp -r .git/rebase-merge state; rm -r .git/rebase-merge; ln -s ../state .git/rebase-merge",
        "echo 'exec @PWN' >> state/git-rebase-todo"
      ],
      then: goOn
    },
    {
      name: "in a nested repository",
      before: `git init -q lib; cd lib; ${rebasing}; ${stopped}`,
      ...allowCommit,
      calls: ["SIGNALBOX_ASK=commit true; echo 'exec @PWN' >> lib/.git/rebase-merge/git-rebase-todo"],
      then: `cd lib; ${goOn}`
    },
    {
      name: "without an approval",
      before: `${rebasing}; ${stopped}`,
      calls: ["echo 'exec @PWN' >> .git/rebase-merge/git-rebase-todo"],
      then: goOn
    },
    {
      name: "by a file tool",
      before: `${rebasing}; ${stopped}`,
      calls: [{ write: ".git/rebase-merge/git-rebase-todo", content: "exec @PWN\n" }],
      then: goOn
    }
  ])
})
