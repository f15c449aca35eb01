//! A client of rmcp: connects to the URL with the key, in the era, and does what each line says.
use rmcp::{
    ClientLifecycleMode, ClientServiceExt,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let [url, key, era] = std::env::args().skip(1).collect::<Vec<_>>().try_into().expect("url, key and era");
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = match era.as_str() {
        "modern" => ClientLifecycleMode::Discover { preferred_versions },
        _ => ClientLifecycleMode::Initialize,
    };
    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(key);
    let transport = StreamableHttpClientTransport::from_config(config);
    let client = ClientConfig::default().serve_with_lifecycle(transport, mode).await.expect("a connection");
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await.expect("a line") {
        let asked: Value = serde_json::from_str(&line).expect("JSON");
        let answer = match asked["name"].as_str() {
            None => client.list_all_tools().await.map(|tools| json!(tools.iter().map(|tool| &tool.name).collect::<Vec<_>>())),
            Some(name) => {
                let arguments = asked["arguments"].as_object().cloned().unwrap_or_default();
                let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
                client.call_tool(params).await.map(|result| json!(result))
            }
        };
        println!("{}", answer.map_or_else(|error| json!({ "error": error.to_string() }), |value| json!({ "answer": value })));
    }
}
