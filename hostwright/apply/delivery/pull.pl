# Fetches one file by HTTP into a part that is continued, at most as many bytes as are missing. Nothing of the
# environment or of a user's configuration counts: no proxy, no .netrc, no redirection.
# Arguments: address or name, port, path, part, size of the whole file. The first line of standard input is the token;
# its end means that nobody wants the file any more.
# It prints "at BYTES" every second at most and every two at least. Exit status: 0 where the part is as long as the
# file, 10 with a last line "failed WORD" and what is known of it, 3 where it was called off.
use strict;
use warnings;
use Errno qw(EINPROGRESS EINTR EAGAIN ENOSPC EDQUOT EFBIG);
use Fcntl qw(O_RDWR O_CREAT O_NOFOLLOW SEEK_SET F_GETFL F_SETFL O_NONBLOCK);
use Socket qw(:addrinfo SOCK_STREAM SOL_SOCKET SO_ERROR);

my $CONNECT_S = 3;          # a firewall that drops packets is one that refuses
my $ANSWER_S = 15;          # until the headers are here: a busy peer
my $STALLED_S = 20;         # without one byte
my $WINDOW_S = 60;          # in which at least this many bytes must come: 512 kbit/s
my $WINDOW_BYTES = $WINDOW_S * 64 * 1024;
my $HEADER_BYTES = 8192;
my $READ_BYTES = 1024 * 1024;

my ($address, $port, $path, $part, $size) = @ARGV;
my ($told_s, $at) = (0);
$| = 1;
$SIG{PIPE} = 'DEFAULT';     # nobody reads what is printed: nobody waits for the file
umask 022;

sub failed {
    my ($word, $why) = @_;
    $why =~ tr/\n\r/  /;
    print "at $at\n" if defined $at;
    print "failed $word ", substr($why, 0, 200), "\n";
    exit 10;
}
sub called_off { exit 3 }

# The end of standard input, or more of it than the token, ends this program.
my $token = '';
while ($token !~ /\n/) {
    my $n = sysread(STDIN, $token, 256, length $token);
    next if !defined $n && $!{EINTR};
    called_off() if !$n || length $token > 256;
}
$token =~ s/\n.*//s;

sysopen(my $file, $part, O_RDWR | O_CREAT | O_NOFOLLOW, 0644) or failed('disk', "$part: $!");
$at = -s $file;
if ($at > $size) { truncate($file, 0) or failed('disk', "$part: $!"); $at = 0 }
exit 0 if $at == $size;
sysseek($file, $at, SEEK_SET);

my $socket = connected();
my $left = answered($socket);
taken($socket, $left);
close($file) or failed('disk', "$part: $!");
exit 0;

# Waits until the socket can be read, or written to for $write; whether that came within so many seconds.
sub ready {
    my ($socket, $seconds, $write) = @_;
    my $until = time + $seconds;
    while ((my $rest = $until - time) > 0) {
        my ($in, $out) = ('', '');
        vec($in, fileno(STDIN), 1) = 1;
        vec($write ? $out : $in, fileno($socket), 1) = 1;
        my $n = select(my $readable = $in, my $writable = $out, undef, $rest > 2 ? 2 : $rest);
        next if $n < 0 && $!{EINTR};
        called_off() if vec($readable, fileno(STDIN), 1);
        return 1 if $n > 0;
        progress();
    }
    return 0;
}

sub connected {
    alarm 2 * $CONNECT_S;   # a resolver has no limit of its own, and nothing but a signal ends it
    my ($error, @found) = getaddrinfo($address, $port, {socktype => SOCK_STREAM});
    alarm 0;
    failed('connect', "$address cannot be resolved: $error") if $error;
    my $why = 'no address';
    for my $one (@found > 2 ? @found[0, 1] : @found) {
        socket(my $socket, $one->{family}, $one->{socktype}, $one->{protocol}) or do { $why = "$!"; next };
        fcntl($socket, F_SETFL, fcntl($socket, F_GETFL, 0) | O_NONBLOCK);
        if (!connect($socket, $one->{addr})) {
            if (!$!{EINPROGRESS}) { $why = "$!"; next }
            if (!ready($socket, $CONNECT_S, 1)) { $why = "no answer within $CONNECT_S s"; next }
            $! = unpack('i', getsockopt($socket, SOL_SOCKET, SO_ERROR));
            if ($!) { $why = "$!"; next }
        }
        return $socket;
    }
    failed('connect', "$address port $port: $why");
}

# Sends the request and reads the headers, and writes what came of the content with them; how much is still to come.
sub answered {
    my ($socket) = @_;
    my $range = $at ? "Range: bytes=$at-\r\n" : '';
    my $lines = "Host: files\r\nAuthorization: Bearer $token\r\n${range}Connection: close\r\n";
    my $request = "GET /$path HTTP/1.1\r\n$lines\r\n";
    my $sent = syswrite($socket, $request);
    failed('cut', 'the request could not be sent') if !defined $sent || $sent != length $request;
    my ($head, $until) = ('', time + $ANSWER_S);
    while ($head !~ /\r\n\r\n/) {
        failed('answer', 'its headers have no end') if length $head > $HEADER_BYTES;
        failed('stalled', "no answer within $ANSWER_S s") if time >= $until || !ready($socket, $until - time, 0);
        my $n = sysread($socket, $head, 4096, length $head);
        next if !defined $n && ($!{EINTR} || $!{EAGAIN});
        failed('cut', defined $n ? 'the connection ended before an answer' : "$!") if !$n;
    }
    $head =~ s/^(.*?\r\n)\r\n//s;
    my $headers = $1;
    failed('answer', 'it speaks no HTTP') if $headers !~ m{^HTTP/1\.[01] ([0-9]{3})[ \r]};
    my $status = $1;
    failed('busy', 'all its places are taken') if $status eq '503';
    failed('status', "it answers $status") if $status ne ($at ? '206' : '200');
    failed('answer', 'it sends the content in another form') if $headers =~ /^(Transfer|Content)-Encoding:/mi;
    my $missing = $size - $at;
    my @length = $headers =~ /^Content-Length:[ \t]*([0-9]{1,15})[ \t]*\r$/mig;
    failed('size', 'it does not say how much it sends') if @length != 1;
    failed('size', "it would send $length[0] bytes of $missing") if $length[0] != $missing;
    if ($at) {
        my @range = $headers =~ m{^Content-Range:[ \t]*bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})[ \t]*\r$}mig;
        failed('size', 'it sends another part')
            if @range != 3 || $range[0] != $at || $range[1] != $size - 1 || $range[2] != $size;
    }
    $head = substr($head, 0, $missing);
    written(\$head, length $head);
    return $missing - length $head;
}

sub taken {
    my ($socket, $left) = @_;
    my ($buffer, $since, $then) = ('', time, $at);
    while ($left > 0) {
        failed('stalled', "no byte for $STALLED_S s") if !ready($socket, $STALLED_S, 0);
        my $n = sysread($socket, $buffer, $left < $READ_BYTES ? $left : $READ_BYTES);
        next if !defined $n && ($!{EINTR} || $!{EAGAIN});
        failed('cut', defined $n ? 'the connection ended in the middle' : "$!") if !$n;
        written(\$buffer, $n);
        $left -= $n;
        if (time - $since >= $WINDOW_S) {
            failed('slow', 'it sends less than 512 kbit/s') if $at - $then < $WINDOW_BYTES;
            ($since, $then) = (time, $at);
        }
        progress();
    }
}

sub written {
    my ($buffer, $size) = @_;
    my $done = 0;
    while ($done < $size) {
        my $n = syswrite($file, $$buffer, $size - $done, $done);
        if (!defined $n) {
            next if $!{EINTR};
            failed('full', "$part: $!") if $!{ENOSPC} || $!{EDQUOT};
            failed('disk', "$part: $!");
        }
        $done += $n;
        $at += $n;
    }
}

sub progress {
    return if time == $told_s;
    $told_s = time;
    print "at $at\n";
}
