import { type Answer, send } from './http.ts'
import type { AuthorizationServer } from './authorization-server.ts'

/** A person's browser at a gateway: it keeps the cookies, and sends what a browser sends with a form of the page. */
export class Browser {
  readonly #origin: string
  readonly #cookies = new Map<string, string>()

  constructor(origin: string) {
    this.#origin = origin
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#send(path, { method: 'GET', headers: { 'sec-fetch-site': 'same-origin', ...headers } })
  }

  post(path: string, form: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) {
    return this.#send(path, {
      method: 'POST',
      headers: {
        origin: this.#origin,
        'sec-fetch-site': 'same-origin',
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      },
      body: new URLSearchParams(form).toString(),
    })
  }

  /** Shows a key on the page of a server. */
  async logIn(server: string, key: string): Promise<void> {
    const answer = await this.post(`/connect/${server}`, { key })
    if (answer.status !== 303) throw new Error(`the login answered ${answer.status}: ${answer.text}`)
  }

  /** Presses "Connect", and returns the page of the authorization server. */
  async begin(server: string): Promise<URL> {
    const answer = await this.post(`/connect/${server}`, { action: 'connect' })
    const [, url] = /<a href="([^"]+)" rel="noreferrer">/.exec(answer.text) ?? []
    if (url === undefined) throw new Error(`it answered ${answer.status}: ${answer.text}`)
    return new URL(url.replaceAll('&amp;', '&'))
  }

  /** Connects a server, as the account that logs in at the authorization server. */
  async connect(server: string, login: AuthorizationServer): Promise<Answer> {
    const back = await login.open(await this.begin(server))
    return this.get(`${back.pathname}${back.search}`)
  }

  async #send(path: string, sending: Parameters<typeof send>[1]): Promise<Answer> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await send(`${this.#origin}${path}`, {
      ...sending,
      headers: { ...sending.headers, ...(cookie === '' ? {} : { cookie }) },
    })
    for (const line of answer.headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      this.#cookies.set(name, value)
    }
    return answer
  }
}
