import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { completionScript } from '../packages/cli/src/commands/completion.ts'
import { fakeIo } from '../packages/cli/src/testing/fake-io.ts'
import { withBinaries } from './support/binaries.ts'
import { tempFolder } from './support/gateway.ts'

/** What a program must end within, on any machine. */
const PATIENCE_MS = 30_000
const folder = tempFolder()
after(() => folder.remove())
const asked = join(folder.path, 'asked')

/** Runs a program in a shell that has the script, and a command that knows two tools. */
function run(shell: string, name: 'zsh' | 'fish', args: readonly string[], program: string): string {
  const io = fakeIo()
  completionScript(name, io)
  writeFileSync(join(folder.path, 'script'), io.out())
  const fake = join(folder.path, 'toolgate')
  writeFileSync(
    fake,
    '#!/bin/sh\necho "$*" >"$ASKED"\ncase "$*" in *files:*) printf "%s\\n" files:read files:remove;; esac\n',
  )
  chmodSync(fake, 0o755)
  writeFileSync(join(folder.path, 'program'), program)
  writeFileSync(asked, '')
  const { stdout, error } = spawnSync(shell, [...args, join(folder.path, 'program')], {
    cwd: folder.path,
    encoding: 'utf8',
    timeout: PATIENCE_MS,
    env: { PATH: `${folder.path}:${process.env['PATH']}`, HOME: folder.path, ASKED: asked, TERM: 'dumb' },
  })
  assert.equal(error, undefined)
  return stdout
}

withBinaries(['zsh', 'fish'], ({ zsh, fish }) => {
  describe('the completion of shells', () => {
    it('completes an id that holds a colon in zsh, in a terminal', () => {
      // The first characters that both tools share are completed by the first Tab.
      const out = run(
        zsh,
        'zsh',
        ['-f'],
        `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; autoload -Uz compinit; compinit -u -D; source ${folder.path}/script; print REA""DY'
zpty -r z out '*READY*'
zpty -w -n z $'toolgate why --as vera files:\\t'
zpty -r z out '*files:re*'
print -r -- "$out"
zpty -d z`,
      )
      assert.match(out, /toolgate why --as vera files:re/)
      assert.equal(readFileSync(asked, 'utf8'), 'completion --words -- why --as vera files:\n')
    })

    it('completes in fish, and completes paths where the command knows nothing', () => {
      const out = run(
        fish,
        'fish',
        [],
        `source ${folder.path}/script
complete -C 'toolgate why --as vera files:r'
echo ==
complete -C 'toolgate check scr'`,
      )
      const [ids = '', paths = ''] = out.split('==\n')
      assert.equal(ids, 'files:read\nfiles:remove\n')
      assert.equal(paths, 'script\n')
    })
  })
})
