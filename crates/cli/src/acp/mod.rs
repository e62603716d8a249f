//! `plimsoll acp`: the agent of an editor, by the Agent Client Protocol over standard input and
//! output. The agent is the same as in `run` and `chat`. Only protocol messages are written to
//! standard output.

mod calls;
mod content;
mod outbox;
mod permission;
mod replay;
mod server;
mod servers;
mod session;
mod updates;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{CancelNotification, ClientRequest};
use agent_client_protocol::{Agent, Error, on_receive_notification, on_receive_request};
use tokio::time::sleep;

use self::outbox::stdio;
use self::server::AcpServer;
use crate::asked_to_end;
use crate::error::{CliError, DONE, INTERRUPTED};
use crate::sessions::open_store;
use crate::settings::Sources;

/// Maximum time for closing the connection if the client does not read.
const ENDING: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) async fn run(sources: &Sources) -> Result<u8, CliError> {
    if sources.flags.has("root") {
        return Err(CliError::usage(
            "an editor names a folder for each session, so --root has no effect; leave it out",
        ));
    }
    let store = Arc::new(open_store::local().await?);
    let server = Arc::new(AcpServer::new(sources.clone(), store));
    match serve(&server).await {
        Ok(code) => Ok(code),
        Err(error) => {
            server.close_all().await;
            Err(CliError::failed(format!("the connection failed: {error}")))
        }
    }
}

/// Serves the connection until the client ends it or the process is interrupted.
async fn serve(server: &Arc<AcpServer>) -> Result<u8, Error> {
    let connection = Agent
        .v1()
        .name("plimsoll")
        .on_receive_request(
            async |request: ClientRequest, responder, client| {
                server.receive(request, responder, client).await
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async |request: CancelNotification, _| server.receive_cancel(request.session_id).await,
            on_receive_notification!(),
        );
    connection
        .connect_with(stdio(), async move |client| {
            let code = tokio::select! {
                () = client.incoming_closed() => DONE,
                Ok(()) = asked_to_end() => INTERRUPTED,
            };
            server.close_all().await;
            tokio::spawn(async move {
                sleep(ENDING).await;
                std::process::exit(i32::from(code));
            });
            Ok(code)
        })
        .await
}
