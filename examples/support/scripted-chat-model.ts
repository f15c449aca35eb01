import { BaseChatModel, type BindToolsInput } from '@langchain/core/language_models/chat_models'
import { AIMessage, type BaseMessage, HumanMessage } from '@langchain/core/messages'

/**
 * LangChain's model in place of a provider's. It calls the tools that the last question names, one a line, `pay 5`,
 * whether it was sent them or not. Once it has their results, it says which tools it was sent.
 */
export class ScriptedChatModel extends BaseChatModel {
  constructor() {
    super({})
  }

  _llmType(): string {
    return 'scripted'
  }

  override bindTools(tools: BindToolsInput[]): ReturnType<this['withConfig']> {
    return this.withConfig({ tools } as object) as ReturnType<this['withConfig']>
  }

  async _generate(messages: BaseMessage[], options: object) {
    const { tools = [] } = options as { readonly tools?: readonly { readonly name: string }[] }
    const question = messages.findLast((message) => HumanMessage.isInstance(message))
    const calls = messages.at(-1) === question ? callsOf(question?.text ?? '') : []
    const said = `I was sent: ${tools.map(({ name }) => name).join(', ')}.`
    const message = new AIMessage(calls.length > 0 ? { content: '', tool_calls: calls } : said)
    return { generations: [{ text: message.text, message }] }
  }
}

let calls = 0

function callsOf(text: string) {
  return text.split('\n').map((line) => {
    const [name = '', what = ''] = line.split(' ')
    return { name, args: { what }, id: `call-${++calls}`, type: 'tool_call' as const }
  })
}
