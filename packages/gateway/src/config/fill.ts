/** What a `${…}` may stand for in one text. */
export interface FillContext {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute folder of the configuration file, for `${configDir}`. */
  readonly configDir: string
  /** Leaves `${port}` as it is, because it is filled at each start of the server. */
  readonly keepsPort: boolean
  /** Escapes what is filled in, because it lands inside a string of CEL. */
  readonly inCondition: boolean
  /** Called with the value of each variable of the environment, which may be a secret. */
  readonly onFilled?: (name: string, value: string) => void
}

export interface Filled {
  readonly text: string
  /** Whether anything was replaced, so that offsets in `text` are not those of the source. */
  readonly changed: boolean
  readonly problems: readonly { readonly offset: number; readonly message: string }[]
}

const PLACEHOLDER = /\$?\$\{([^}]*)(\}?)/g
const REFERENCE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Fills `${VAR}` and `${VAR:-default}` from the environment, and `${configDir}`.
 *
 * A blank variable counts as unset; `${VAR:-}` allows it. `$${` stands for `${`.
 * What was filled in is never read again.
 */
export function fillText(text: string, context: FillContext): Filled {
  if (!text.includes('${')) return { text, changed: false, problems: [] }
  const problems: { offset: number; message: string }[] = []
  const filled = text.replace(PLACEHOLDER, (whole, inner: string, close: string, offset: number) => {
    const answer = whole.startsWith('$$') ? escaped(whole, inner, context) : resolve(whole, inner, close, context)
    if ('text' in answer) return answer.text
    problems.push({ offset, message: answer.problem })
    return whole
  })
  return { text: filled, changed: filled !== text, problems }
}

type Filling = { readonly text: string } | { readonly problem: string }

function resolve(whole: string, inner: string, close: string, context: FillContext): Filling {
  const [, name, fallback] = (close && REFERENCE.exec(inner)) || []
  if (name === undefined) return { problem: `found ${whole}, expected \${VAR} or \${VAR:-default}` }
  if (name === 'port' && fallback === undefined) {
    if (context.keepsPort) return { text: whole }
    return { problem: 'found ${port}, which is known only to a server' }
  }
  const set = own(context.env, name)
  if (name !== 'configDir' && set) context.onFilled?.(name, set)
  const value = name === 'configDir' ? context.configDir : set || fallback
  if (value === undefined)
    return { problem: `the environment variable ${name} is not set; set it or write \${${name}:-default}` }
  return { text: context.inCondition ? escapeCel(value) : value }
}

function escaped(whole: string, inner: string, context: FillContext): Filling {
  if (context.keepsPort && inner === 'port') return { problem: 'found $${port}, which a server cannot escape' }
  return { text: whole.slice(1) }
}

/** Variables are named by the file, so `constructor` must not find a property of every object. */
function own(env: FillContext['env'], name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined
}

function escapeCel(value: string): string {
  return value.replace(/[\\'"\n\r]/g, (char) => (char === '\n' ? '\\n' : char === '\r' ? '\\r' : `\\${char}`))
}
