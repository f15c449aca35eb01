import { spawn } from 'node:child_process'
import { chmodSync, cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const ROOT = path.resolve(import.meta.dirname, '../..')
const BIN = path.join(ROOT, 'packages/cli/bin/toolgate.js')

export interface PageBlock {
  /** Of its first line in the page. */
  readonly line: number
  readonly text: string
}

/** Returns the blocks of a page in one language. */
export function blocksOf(page: string, language: string): readonly PageBlock[] {
  const text = readFileSync(path.join(ROOT, page), 'utf8')
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\`$`, 'gm'))].map((match) => ({
    line: text.slice(0, match.index).split('\n').length + 1,
    text: match[1] ?? '',
  }))
}

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A folder in place of a machine: shells see its `/etc`, `/opt` and `/var`, and a copy of `deploy/`. */
export interface Machine {
  readonly folder: string
  /** The place of a file. */
  at(file: string): string
  /** Runs lines in bash. What they export stays for the next ones. */
  run(lines: string): Promise<Ran>
}

/**
 * Makes a machine whose texts have other values: `replace` is applied to every line and to the files of `deploy/`.
 *
 * `useradd`, `chown`, `npm install` and `systemctl` are stand-ins: no user is made, the command is the one of this repository, and
 * the lines of a unit run without systemd.
 */
export function makeMachine(folder: string, replace: Readonly<Record<string, string>>): Machine {
  const places = [
    '/etc/toolgate',
    '/etc/systemd',
    '/opt/toolgate',
    '/var/lib/toolgate',
    '/var/backups',
    '/run/credentials',
  ]
  const values = { ...Object.fromEntries(places.map((place) => [place, folder + place])), ...replace }
  const fit = (text: string) => Object.entries(values).reduce((all, [from, to]) => all.replaceAll(from, to), text)
  for (const place of ['/etc/systemd/system', '/var/lib', '/var/backups', '/run/credentials', '/shims', '/clone'])
    mkdirSync(folder + place, { recursive: true })
  cpSync(path.join(ROOT, 'deploy'), `${folder}/clone/deploy`, { recursive: true })
  for (const file of globSync('**/*', { cwd: `${folder}/clone/deploy`, withFileTypes: true })) {
    if (!file.isFile()) continue
    const full = path.join(file.parentPath, file.name)
    writeFileSync(full, fit(readFileSync(full, 'utf8')))
  }
  for (const [name, lines] of Object.entries(SHIMS)) {
    writeFileSync(`${folder}/shims/${name}`, `#!/bin/bash\nset -euo pipefail\n${lines}`)
    chmodSync(`${folder}/shims/${name}`, 0o755)
  }
  writeFileSync(`${folder}/exported`, '')
  const { TOOLGATE_URL: _url, TOOLGATE_KEY: _key, PORT: _port, ...inherited } = process.env
  const env = {
    ...inherited,
    MACHINE: folder,
    TOOLGATE_BIN: BIN,
    NODE: process.execPath,
    // Where the command looks by itself, on a real machine.
    TOOLGATE_URL: fit('http://127.0.0.1:8787'),
    PATH: `${folder}/shims:${path.dirname(process.execPath)}:${process.env['PATH']}`,
  }
  return {
    folder,
    at: (file) => folder + file,
    run: (lines) =>
      runBash(`set -euo pipefail; . ${folder}/exported\n${fit(lines)}\nexport -p > ${folder}/exported`, {
        cwd: `${folder}/clone`,
        env,
      }),
  }
}

const SHIMS = {
  chown: 'echo "chown $*" >> "$MACHINE/made"\n',
  chgrp: 'echo "chgrp $*" >> "$MACHINE/made"\n',
  useradd: 'echo "useradd $*" >> "$MACHINE/made"\n',
  install: `args=()
while [ $# -gt 0 ]; do case "$1" in -g|-o) shift 2 ;; *) args+=("$1"); shift ;; esac; done
exec /usr/bin/install "\${args[@]}"
`,
  npm: `[ "$1 $2" = "run pack" ] && exit
[[ "$1 $2 $4" = "install --prefix ./packs/toolgate-"*.tgz ]]
mkdir -p "$3/node_modules/.bin"
printf '#!/bin/sh\\nexec "%s" --conditions=toolgate-source "%s" "$@"\\n' "$NODE" "$TOOLGATE_BIN" > "$3/node_modules/.bin/toolgate"
chmod +x "$3/node_modules/.bin/toolgate"
`,
  systemctl: `name=\${!#}
unit="$MACHINE/etc/systemd/system/$name.service"
of() { sed -n "s/^$1=//p" "$unit"; }
stop() {
  pid=$(cat "$MACHINE/$name.pid")
  kill -TERM "$pid"
  timeout "$(of TimeoutStopSec)" tail --pid="$pid" -f /dev/null
}
start() {
  mkdir -p "$(of WorkingDirectory)" "$MACHINE/run/credentials/$name.service"
  of LoadCredential | while IFS=: read -r id file; do cp "$file" "$MACHINE/run/credentials/$name.service/$id"; done
  cd "$(of WorkingDirectory)"
  umask "$(of UMask)"
  env -i PATH="$PATH" NODE_COMPILE_CACHE="\${NODE_COMPILE_CACHE:-}" $(of Environment) setsid $(of ExecStart) >> "$MACHINE/$name.log" 2>&1 < /dev/null &
  echo $! > "$MACHINE/$name.pid"
}
case "$1" in
  daemon-reload) ;;
  enable|start) start ;;
  stop) stop ;;
  restart) stop; start ;;
  reload)
    export MAINPID=$(cat "$MACHINE/$name.pid")
    of ExecReload | while read -r line; do bash -c "$line"; done ;;
  *) exit 64 ;;
esac
`,
} as const

function runBash(script: string, options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', script], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, err] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, out, err }))
  })
}
